//! Devices by name, as data files with their sources.
