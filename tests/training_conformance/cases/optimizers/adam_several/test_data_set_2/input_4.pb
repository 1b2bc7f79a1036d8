BG2J
×c¿