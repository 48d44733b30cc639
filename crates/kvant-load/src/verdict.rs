//! Who was the limit: the generator, the server, or neither.
