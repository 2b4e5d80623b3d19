"""Pure parts of security: verifiers of passwords, mechanisms, rights."""
