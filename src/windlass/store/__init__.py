"""Where jobs are kept: the contract, and the stores that fulfil it."""
