package shell

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// longestFirstLine is how many bytes of a file Linux reads for its interpreter (BINPRM_BUF_SIZE).
const longestFirstLine = 256

// missing returns what is wrong with the first line of a script whose interpreter this image lacks.
// The kernel says "no such file" of it, and so about the script, which exists; env ends with a code
// that is tried again. The claim's user reads it, so it repeats no more of the script.
func missing(path string) string {
	program := lacking(firstLine(path))
	if program == "" {
		return ""
	}
	return contract.ClaimPrefix + fmt.Sprintf("the first line of %s names the program %q, which this "+
		"image does not have. Remedy: name an image that has it in the key image, or change the first line",
		path, program)
}

// firstLine returns the first line of a script, and nothing of another file.
func firstLine(path string) string {
	file, err := os.Open(path) //nolint:gosec // it is the script's own command
	if err != nil {
		return "" // whoever may not read a program may run it nevertheless
	}
	defer file.Close()
	start, _ := io.ReadAll(io.LimitReader(file, longestFirstLine))
	line, _, _ := strings.Cut(string(start), "\n")
	if !strings.HasPrefix(line, "#!") {
		return ""
	}
	return line
}

// lacking returns the program of a first line that cannot be found. The kernel takes all that
// follows the interpreter as one argument (load_script in fs/binfmt_script.c).
func lacking(line string) string {
	const blank = " \t"
	text := strings.Trim(strings.TrimPrefix(line, "#!"), blank)
	at := strings.IndexAny(text+blank, blank)
	interpreter, argument := text[:at], strings.Trim(text[at:], blank)
	if interpreter == "" {
		return ""
	}
	if _, err := exec.LookPath(interpreter); err != nil || !filepath.IsAbs(interpreter) {
		return interpreter
	}
	isEnv := filepath.Base(interpreter) == "env"
	if !isEnv || argument == "" || argument[0] == '-' || strings.ContainsAny(argument, "/=") {
		return ""
	}
	if _, err := exec.LookPath(argument); err != nil {
		return argument
	}
	return ""
}
