/** An exported page neither saves nor opens files. */
export function takeFiles() {}
export function offerFiles() {}
export function closeMenu() {}
