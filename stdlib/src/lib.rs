//! .tile modules
