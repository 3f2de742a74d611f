package conform_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/conform"
)

// row matches a row of the table of promises in docs/contract.md.
var row = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (.*) \\|$")

// The page and the code say the same of each promise, in the same order.
func TestTheContractListsEveryPromise(t *testing.T) {
	page, err := os.ReadFile("../docs/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile(`(?s)\n## Test an image\n(.*?)\n## `).FindSubmatch(page)
	if section == nil {
		t.Fatal("the page has no section on the test of an image")
	}
	said := row.FindAllStringSubmatch(string(section[1]), -1)
	for i, p := range conform.Promises() {
		want := "| `" + p.Name + "` | " + p.Contract + " |"
		if i >= len(said) || said[i][0] != want {
			t.Errorf("row %d must be:\n%s", i+1, want)
		}
	}
	if len(said) != len(conform.Promises()) {
		t.Errorf("%d rows, %d promises", len(said), len(conform.Promises()))
	}
}
