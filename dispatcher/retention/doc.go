// Package retention decides for how long a stored config revision is kept that nothing names any more. It is pure.
package retention
