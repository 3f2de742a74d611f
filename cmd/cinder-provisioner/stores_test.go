package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// store is a Cinder, read by plain HTTP.
type store struct {
	// endpoint of Cinder, with the project in it where keystone's catalog has one.
	endpoint string
	// keystone that the command logs in to; empty where Cinder is used without one.
	keystone string
	// token by which the test reads the Cinder.
	token string
	// env is the rest of the command's login.
	env []string
	// binary of the command.
	binary string
	// tokens counts those that a fake keystone has issued. It is nil for the others.
	tokens *atomic.Int32
	// types by the source that their volumes are mapped to.
	types map[string]string
	// release is Cinder's, as its first number.
	release string
}

// exports returns the values of attach-api by which a volume of this Cinder is exported in each of
// the two ways. Cinder 17 makes attachments only for servers: there the first answer leads to the
// second way.
func (s store) exports() []string {
	if s.release == "17" {
		return []string{"auto", "reserve"}
	}
	return []string{"attachments", "reserve"}
}

// cinders returns two fake Cinders, without and with keystone, and the real one of the openrc file
// that FLEX_TEST_CINDER names, if it is set.
func cinders(t *testing.T) map[string]store {
	t.Helper()
	all := map[string]store{"fake": fakeStore(t), "fake with keystone": fakeKeystoneStore(t)}
	if openrc := os.Getenv("FLEX_TEST_CINDER"); openrc != "" {
		all["real"] = realStore(t, openrc)
	}
	return all
}

func fakeCinder(t *testing.T) *cindertest.Server {
	t.Helper()
	server := cindertest.New()
	t.Cleanup(server.Close)
	server.Quota = 1000
	return server
}

func fakeStore(t *testing.T) store {
	t.Helper()
	return store{endpoint: fakeCinder(t).Endpoint(), token: "admin:admin", types: fakeTypes()}
}

func fakeTypes() map[string]string {
	return map[string]string{
		"iscsi": cindertest.TypePlain, "fc": cindertest.TypeFibre, "rbd.csi.ceph.com": cindertest.TypeRBD, "csi.nvmf.com": cindertest.TypeNVMe,
	}
}

func fakeKeystoneStore(t *testing.T) store {
	t.Helper()
	server := fakeCinder(t)
	keystone := cindertest.NewKeystone(server)
	t.Cleanup(keystone.Close)
	return store{
		endpoint: server.Endpoint() + "/" + cindertest.Project, keystone: keystone.URL + "/v3", token: "test:" + cindertest.Project,
		env:    []string{"OS_USERNAME=u", "OS_PASSWORD=" + keystone.Password, "OS_PROJECT_NAME=p"},
		tokens: &keystone.Tokens,
		types:  fakeTypes(),
	}
}

func realStore(t *testing.T, openrc string) store {
	t.Helper()
	env := cindertest.ReadOpenrc(t, openrc)
	actual := store{
		endpoint: env["OS_CINDER_ENDPOINT"], keystone: env["OS_AUTH_URL"], token: "admin:admin", types: map[string]string{},
		release: os.Getenv("FLEX_TEST_CINDER_RELEASE"),
	}
	if actual.endpoint == "" {
		actual.token, actual.endpoint = logIn(t, env)
	}
	for name, value := range env {
		if name != "OS_CINDER_ENDPOINT" && name != "OS_AUTH_URL" {
			actual.env = append(actual.env, name+"="+value)
		}
	}
	// FLEX_TEST_CINDER_TYPES: "fc=fc,iscsi=lvmmp".
	for pair := range strings.SplitSeq(os.Getenv("FLEX_TEST_CINDER_TYPES"), ",") {
		if source, name, ok := strings.Cut(pair, "="); ok {
			actual.types[source] = name
		}
	}
	return actual
}

// get reads one of Cinder's resources.
func (s store) get(t *testing.T, path string, into any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.endpoint+s.project()+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Auth-Token", s.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("read %s of Cinder: %s", path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatal(err)
	}
}

// project is what stands in the URL before each resource: before Yoga (20) the project, which
// keystone's catalog has there already.
func (s store) project() string {
	if s.release == "17" && s.keystone == "" {
		return "/admin"
	}
	return ""
}

// volumes counts those whose metadata carry one of the UIDs.
func (s store) volumes(t *testing.T, uids ...string) int {
	t.Helper()
	var body struct {
		Volumes []struct {
			Metadata map[string]string `json:"metadata"`
		} `json:"volumes"`
	}
	s.get(t, "/volumes/detail", &body)
	count := 0
	for _, v := range body.Volumes {
		if slices.Contains(uids, v.Metadata[contract.AnnClaimUID]) {
			count++
		}
	}
	return count
}

// usage returns how much of the project's quota is used according to Cinder: volumes and GiB.
func (s store) usage(t *testing.T) (volumes, gib int) {
	t.Helper()
	var body struct {
		Limits struct {
			Absolute struct {
				Volumes int `json:"totalVolumesUsed"`
				GiB     int `json:"totalGigabytesUsed"`
			} `json:"absolute"`
		} `json:"limits"`
	}
	s.get(t, "/limits", &body)
	return body.Limits.Absolute.Volumes, body.Limits.Absolute.GiB
}

// eachCinder runs a test by the command's binary on every Cinder, in the order of their names.
func eachCinder(t *testing.T, test func(t *testing.T, s store)) {
	t.Helper()
	binary, all := build(t), cinders(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		s.binary = binary
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}
