package credentials_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
)

// cloudConf finds the files cloud.conf in the blocks of a page.
var cloudConf = regexp.MustCompile("(?ms)^(\\[Global\\]\n.*?)^(?:END|```)$")

func TestLoginsOfThePagesAreRead(t *testing.T) {
	keystone := credentials.Login{AuthURL: "https://keystone.example:5000/v3", Username: "USER", Password: "PASSWORD", Project: "PROJECT", DomainName: "Default"}
	for page, want := range map[string][]credentials.Login{
		"docs/install.md": {keystone},
		"docs/cinder.md":  {keystone, {Endpoint: "http://192.0.2.10:8776/v3", Project: "admin"}},
	} {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		found := cloudConf.FindAllSubmatch(text, -1)
		if len(found) != len(want) {
			t.Fatalf("%s has %d files cloud.conf, want %d", page, len(found), len(want))
		}
		for i, one := range found {
			got, err := credentials.FromConfig("cloud.conf", one[1], "", files)
			check(t, got, err, want[i], "")
		}
	}
}
