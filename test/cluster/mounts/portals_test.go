package mounts

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume/util"
)

// checkPortals shows the kubelet a session with each portal, with its address as the kernel writes
// it. It has to find the session by the text on the PV.
func checkPortals(t *testing.T, s *v1.ISCSIPersistentVolumeSource) {
	t.Helper()
	for _, portal := range append([]string{s.TargetPortal}, s.Portals...) {
		host, port, err := net.SplitHostPort(portal)
		if err != nil {
			t.Fatal(err)
		}
		address, err := netip.ParseAddr(host)
		if err != nil {
			t.Fatalf("the portal %s is no address: %v", portal, err)
		}
		kernel := sysfs(t, s.IQN, address.String(), port)
		found, err := util.NewDeviceHandler(kernel).GetISCSIPortalHostMapForTarget(s.IQN)
		if _, isFound := found[portal]; !isFound {
			t.Errorf("the kubelet does not find the session of %s among %v, %v", portal, found, err)
		}
	}
}

// sysfs writes the session of a target.
func sysfs(t *testing.T, iqn, address, port string) root {
	t.Helper()
	dir := root(t.TempDir())
	session := "/sys/class/iscsi_host/host3/device/session1"
	connection := session + "/connection1:0/iscsi_connection/connection1:0"
	for file, text := range map[string]string{
		session + "/iscsi_session/session1/targetname": iqn,
		connection + "/address":                        address,
		connection + "/port":                           port,
		connection + "/persistent_address":             address,
		connection + "/persistent_port":                port,
	} {
		path := dir.of(file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// root is a directory in place of that of a node.
type root string

func (r root) of(path string) string { return filepath.Join(string(r), path) }

// ReadFile reads below the root, and so do the others.
func (r root) ReadFile(path string) ([]byte, error) { return os.ReadFile(r.of(path)) }

func (r root) ReadDir(path string) ([]os.FileInfo, error) {
	entries, err := os.ReadDir(r.of(path))
	var out []os.FileInfo
	for _, entry := range entries {
		info, infoErr := entry.Info()
		if infoErr != nil {
			return nil, infoErr
		}
		out = append(out, info)
	}
	return out, err
}

func (r root) Lstat(path string) (os.FileInfo, error) { return os.Lstat(r.of(path)) }

func (r root) EvalSymlinks(path string) (string, error) {
	found, err := filepath.EvalSymlinks(r.of(path))
	return strings.TrimPrefix(found, string(r)), err
}
