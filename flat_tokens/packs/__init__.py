"""Plans of which sequences share a row, and the packs made from them."""
