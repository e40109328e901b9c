"""Authentication of clients beyond the tree's own schemes: the users of SASL, and the schemes that a server demands."""
