package credentials_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
)

// secret stands in no seed: where it is printed, a password is.
const secret = "hush-7Qx"

// No text of a cloud config makes its password printable, by the login, its warnings or its faults.
func FuzzCloudConfig(f *testing.F) {
	f.Add("[Global]\nauth-url=http://k/v3\nusername=u\ntenant-name=t\ndomain-name=d\n")
	f.Add("[Global \"a\"]\ncinder-endpoint = \"http://192.0.2.1:8776/v3\"\ntls-insecure\n; x\n[BlockStorage]\nbs-version=v3\n[Global \"b\"]\n")
	f.Add("[Global]\nauth-url=http://k/v3\nuser-id=\"u\\\n\nca-file=x\n[Networking \"")
	f.Fuzz(func(t *testing.T, text string) {
		text += "\npassword=\"" + secret + "\"\n"
		mustHide(t, text, func() (credentials.Login, error) {
			return credentials.FromConfig("cloud.conf", []byte(text), "", files)
		})
	})
}

// Nor does one of a clouds.yaml.
func FuzzClouds(f *testing.F) {
	f.Add("clouds:\n  one:\n    region_name: R\n    interface: internalURL\n    auth:\n      auth_url: http://k/v3\n      username: u\n      project_name: t\n")
	f.Add("clouds:\n  one: &a\n    verify: false\n    profile: vendor\n    regions: [V, {name: R, values: {auth: {domain_id: d}}}]\n    auth:\n")
	f.Add("clouds:\n  one: {networks: [&a x, *a, [[[[]]]]]}\n  two:\n    auth:\n")
	f.Add("clouds:\n  one:\n    auth_type: v3token\n    networks: [1]\n    auth: !!map\n      token: 007\n")
	f.Add("clouds:\n  one:\n    auth_type: |\n")
	f.Fuzz(func(t *testing.T, text string) {
		text += "\n      password: " + secret + "\n"
		mustHide(t, text, func() (credentials.Login, error) {
			return credentials.FromClouds("clouds.yaml", []byte(text), "", files)
		})
	})
}

// mostAllocated is how much memory may be allocated to read a login.
const mostAllocated = 100 << 20

// mustHide checks that a reader prints no password, and allocates little.
func mustHide(t *testing.T, text string, read func() (credentials.Login, error)) {
	t.Helper()
	var login credentials.Login
	var err error
	if bytes := allocated(func() { login, err = read() }); bytes > mostAllocated {
		t.Errorf("%d MiB are allocated for a text of %d KiB", bytes>>20, len(text)>>10)
	}
	printed := strings.Join(append(login.Warnings, fmt.Sprintf("%v %+v %#v", err, login.Password, login.Password)), "\n")
	if strings.Contains(printed, secret) {
		t.Errorf("of %q is printed:\n%s", text, printed)
	}
}

// allocated returns how many bytes a function allocates.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A Secret has up to 1 MiB. What is made of it must fit into the container's memory.
func TestNoCloudsFileCostsMuchMemory(t *testing.T) {
	const open, end = "clouds: {a: {networks: ", "}}\n"
	for name, text := range map[string]string{
		"many values": open + "[" + strings.Repeat("a,", 100_000) + "]" + end,
		"deep lists":  open + strings.Repeat("[", 100) + strings.Repeat("]", 100) + end,
		"1 MiB":       "clouds: {a: {auth: {password: " + strings.Repeat("x", 1<<20) + "}}}",
	} {
		bytes := allocated(func() { _, _ = credentials.FromClouds("clouds.yaml", []byte(text), "", files) }) // whether it is a login does not matter
		if t.Logf("%s: %d KiB", name, bytes>>10); bytes > mostAllocated {
			t.Errorf("%s: %d MiB are allocated for a text of %d KiB", name, bytes>>20, len(text)>>10)
		}
	}
}
