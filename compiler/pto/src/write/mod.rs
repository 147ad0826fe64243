//! Tile IR to PTO text.
