//go:build recipes

package recipes

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// A ConfigMap is mounted as the kubelet mounts it: each key is a link to ..data/KEY, and ..data one
// to a directory, by which all keys change at once.
func TestSeededVolumeHasTheFilesThatBeginWithADot(t *testing.T) {
	n := newNode(t, "scripts/seed-provisioner.sh", "mkfs.ext4", "-q")
	n.caps = ",+dac_override,+fowner"
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	c := claim{uid: number(1), size: mib, more: map[string]string{"FLEX_NOTIFY_URL": server.URL, "HOSTNAME": "pod"}}
	seed := n.root + "/seed"
	n.must(os.MkdirAll(seed+"/..2026_01_01", 0o755))
	n.must(os.Symlink("..2026_01_01", seed+"/..data"))
	n.want(78, "provision", c, "/seed has no files")
	for _, key := range []string{"README", ".hidden", "-dash"} {
		n.must(os.WriteFile(seed+"/..2026_01_01/"+key, []byte(key), 0o600))
		n.must(os.Symlink("..data/"+key, seed+"/"+key))
	}
	for range 2 {
		n.want(0, "provision", c)
	}
	for _, key := range []string{"README", ".hidden", "-dash"} {
		info, err := os.Lstat(n.path(c) + "/" + key)
		n.must(err)
		if got, err := os.ReadFile(n.path(c) + "/" + key); string(got) != key || info.Mode() != 0o666 {
			t.Errorf("%s is %q with %s: %v", key, got, info.Mode(), err)
		}
	}
	if entries, err := os.ReadDir(n.path(c)); len(entries) != 3 {
		t.Errorf("the volume has %v: %v", entries, err)
	}
	n.want(0, "delete", c)
}
