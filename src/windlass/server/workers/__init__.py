"""Workers in any language: they claim and settle jobs over REST."""
