// Command measure prints how much there is to know of the dispatcher: the table of ARCHITECTURE.md,
// "How much there is to know". It reads the sources of the tree in which it is run, or of the one
// that it is given, and compiles nothing. Start at main.
package main
