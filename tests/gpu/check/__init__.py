"""What scripts/gpu-check is made of: `machine` finds the device, `session` holds what all parts share,
`parts` does the checking, one module a part."""
