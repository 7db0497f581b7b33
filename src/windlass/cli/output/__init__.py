"""What commands print: tables, JSON, figures, drawings, progress, and advice with the options of the call."""
