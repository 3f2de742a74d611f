// Package quote prints names that others have chosen: a storage, an image, whoever may write an
// annotation. None of them may end a line, move the cursor of a terminal, or add a word to a
// command that an administrator copies.
package quote
