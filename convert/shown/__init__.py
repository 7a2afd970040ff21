"""What a person says to a conversion and is shown of it."""
