"""The xRegistry model: the model language, the built-in model, data types, constraints."""
