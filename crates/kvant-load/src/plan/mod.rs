//! When requests are due: rates, steps and ramps turned into planned times.
