// Command flex is what a provisioning image in bash needs beside bash itself: one small static
// program. Package shell has all of it.
package main

import (
	"os"

	"github.com/flex-provisioner/flex-provisioner/shell"
)

func main() { os.Exit(shell.Main(os.Args[1:])) }
