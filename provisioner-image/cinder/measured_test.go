package cinder_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// measured is a request, and how Cinder 17, 21, 26, 28 and 29 have answered it (noauth, tgt).
// VOLUME and ATTACHMENT stand for the newest of each.
type measured struct {
	what, method, path, microversion, body string
	// on17 is the status of 17, later that of 21, 26, 28 and 29, which do not differ.
	on17, later int
	// said is in the answer where it is a refusal.
	said string
	// becomes is the volume's status afterwards, or empty.
	becomes string
}

const (
	hexProject = "/00000000000000000000000000000001"
	action     = hexProject + "/volumes/VOLUME/action"
	aServer    = `"11111111-2222-3333-4444-555555555555"`
	node       = `{"connector":{"initiator":"iqn.1993-08.org.debian:01:lab","host":"node1"}}`
	create1    = `{"volume":{"size":1,"name":"c"}}`
	attachBody = `{"attachment":{"volume_uuid":"VOLUME"}}`
)

var urlForms = []measured{
	{"project in URL", "GET", hexProject + "/volumes/detail", "", "", 200, 200, "", ""},
	{"project in the token only", "GET", "/volumes/detail", "", "", 404, 200, "could not be found", ""},
	{"project that is no hexadecimal word", "GET", "/admin/volumes/detail", "", "", 400, 404, "", ""},
	{"project that is not the token's", "GET", "/abcdef/volumes/detail", "", "", 400, 400, "Malformed request url", ""},
	{"no such microversion", "GET", hexProject + "/volumes/detail", "3.99", "", 406, 406, "Version 3.99 is not supported", ""},
	{"microversion of 21", "GET", hexProject + "/volumes/detail", "3.63", "", 406, 200, "maximum is 3.62", ""},
}

var classicWorkflow = []measured{
	{"create", "POST", hexProject + "/volumes", "", create1, 202, 202, "", "available"},
	{"reserve", "POST", action, "", `{"os-reserve":null}`, 202, 202, "", "attaching"},
	{"reserve again", "POST", action, "", `{"os-reserve":null}`, 400, 400, "status must be available to reserve, but the status is attaching", ""},
	{"initialize", "POST", action, "", `{"os-initialize_connection":` + node + `}`, 200, 200, "", "attaching"},
	{"initialize, no connector", "POST", action, "", `{"os-initialize_connection":{}}`, 400, 400, "'connector' is a required property", ""},
	{"initialize, no initiator", "POST", action, "", `{"os-initialize_connection":{"connector":{"host":"x"}}}`, 400, 400, "required information: initiator", ""},
	{"clone of attaching", "POST", hexProject + "/volumes", "", `{"volume":{"size":1,"source_volid":"VOLUME"}}`, 400, 400, "one of 'available, in-use' values", ""},
	{"extend attaching", "POST", action, "", `{"os-extend":{"new_size":2}}`, 400, 400, "to extend, currently attaching", ""},
	{"extend attaching", "POST", action, "3.42", `{"os-extend":{"new_size":2}}`, 400, 400, "to extend, currently attaching", ""},
	{"delete attaching", "DELETE", hexProject + "/volumes/VOLUME", "", "", 400, 400, "must not be migrating, attached", "attaching"},
	{"attach", "POST", action, "", `{"os-attach":{"host_name":"node1","mountpoint":"/mnt"}}`, 202, 202, "", "in-use"},
	{"delete in-use", "DELETE", hexProject + "/volumes/VOLUME", "", "", 400, 400, "must not be migrating, attached", "in-use"},
	{"extend in-use", "POST", action, "", `{"os-extend":{"new_size":2}}`, 400, 400, "to extend, currently in-use", ""},
	{"extend in-use", "POST", action, "3.42", `{"os-extend":{"new_size":2}}`, 202, 202, "", "in-use"},
	{"detach", "POST", action, "", `{"os-detach":{}}`, 202, 202, "", "available"},
	{"reserve", "POST", action, "", `{"os-reserve":null}`, 202, 202, "", "attaching"},
	{"terminate", "POST", action, "", `{"os-terminate_connection":` + node + `}`, 202, 202, "", "available"},
	{"unreserve", "POST", action, "", `{"os-unreserve":null}`, 202, 202, "", "available"},
	{"extend available", "POST", action, "", `{"os-extend":{"new_size":3}}`, 202, 202, "", "available"},
	{"extend smaller", "POST", action, "", `{"os-extend":{"new_size":1}}`, 400, 400, "(current: 3, extended: 1)", ""},
	{"clone too small", "POST", hexProject + "/volumes", "", `{"volume":{"size":1,"source_volid":"VOLUME"}}`, 400, 400, "cannot be smaller than original volume size", ""},
	{"clone without a size", "POST", hexProject + "/volumes", "", `{"volume":{"size":null,"source_volid":"VOLUME"}}`, 202, 202, "", "available"},
}

var withoutServer = []measured{
	{"list", "GET", hexProject + "/attachments", "3.26", "", 404, 404, "could not be found", ""},
	{"create", "POST", hexProject + "/volumes", "", create1, 202, 202, "", "available"},
	{"attach to null", "POST", hexProject + "/attachments", "3.44", `{"attachment":{"volume_uuid":"VOLUME","instance_uuid":null}}`, 400, 400, "None is not of type 'string'", ""},
	{"attach to no uuid", "POST", hexProject + "/attachments", "3.44", `{"attachment":{"volume_uuid":"VOLUME","instance_uuid":""}}`, 400, 400, "Value: . '' is not a 'uuid'", ""},
	{"attach at 3.27", "POST", hexProject + "/attachments", "3.27", attachBody, 400, 200, "'instance_uuid' is a required property", ""},
}

// These follow where the attachment without a server was made.
var fromXenaOn = []measured{
	{"clone of reserved", "POST", hexProject + "/volumes", "", `{"volume":{"size":1,"source_volid":"VOLUME"}}`, 0, 400, "one of 'available, in-use' values", "reserved"},
	{"update", "PUT", hexProject + "/attachments/ATTACHMENT", "3.44", `{"attachment":` + node + `}`, 0, 200, "", "attaching"},
	{"complete at 3.27", "POST", hexProject + "/attachments/ATTACHMENT/action", "3.27", `{"os-complete":null}`, 0, 404, "", "attaching"},
	{"complete", "POST", hexProject + "/attachments/ATTACHMENT/action", "3.44", `{"os-complete":null}`, 0, 204, "", "in-use"},
	{"terminate", "POST", action, "", `{"os-terminate_connection":` + node + `}`, 0, 202, "", "in-use"},
	{"detach", "DELETE", hexProject + "/attachments/ATTACHMENT", "3.44", "", 0, 200, "", "available"},
}

var withServer = []measured{
	{"create", "POST", hexProject + "/volumes", "", create1, 202, 202, "", "available"},
	{"attach", "POST", hexProject + "/attachments", "3.44", `{"attachment":{"volume_uuid":"VOLUME","instance_uuid":` + aServer + `}}`, 200, 200, "", "reserved"},
	{"update", "PUT", hexProject + "/attachments/ATTACHMENT", "3.44", `{"attachment":` + node + `}`, 200, 200, "", "attaching"},
	{"complete", "POST", hexProject + "/attachments/ATTACHMENT/action", "3.44", `{"os-complete":{}}`, 204, 204, "", "in-use"},
	{"terminate", "POST", action, "", `{"os-terminate_connection":` + node + `}`, 202, 500, "either erred or is incapable", "in-use"},
	{"detach", "DELETE", hexProject + "/attachments/ATTACHMENT", "3.44", "", 200, 500, "either erred or is incapable", ""},
}

// A Cinder that is killed between the two writes that create an attachment leaves the volume like
// this.
var reservedWithoutAttachment = []measured{
	{"create", "POST", hexProject + "/volumes", "", create1, 202, 202, "", "available"},
	{"reset", "POST", action, "", `{"os-reset_status":{"status":"reserved"}}`, 202, 202, "", "reserved"},
	{"reserve", "POST", action, "", `{"os-reserve":null}`, 400, 400, "status must be available to reserve, but the status is reserved", "reserved"},
	{"attach to a server", "POST", hexProject + "/attachments", "3.44", `{"attachment":{"volume_uuid":"VOLUME","instance_uuid":` + aServer + `}}`, 400, 400, "status must be available or downloading to reserve, but the current status is reserved", "reserved"},
	{"delete", "DELETE", hexProject + "/volumes/VOLUME", "", "", 400, 400, "must not be migrating, attached", "reserved"},
	{"terminate", "POST", action, "", `{"os-terminate_connection":` + node + `}`, 202, 202, "", "reserved"},
	{"unreserve", "POST", action, "", `{"os-unreserve":null}`, 202, 202, "", "reserved"},
	{"detach", "POST", action, "", `{"os-detach":{}}`, 202, 202, "", "available"},
}

// Each release answers as it was measured to: the fakes, and the real Cinder where it has no
// keystone, as it had none then.
func TestCinderAnswersAsItsReleaseWasMeasured(t *testing.T) {
	for _, release := range cindertest.Releases() {
		t.Run(fmt.Sprintf("fake %d", release), func(t *testing.T) {
			server := cindertest.NewRelease(release)
			t.Cleanup(server.Close)
			testMeasured(t, server.Endpoint(), release)
		})
	}
	openrc := os.Getenv("FLEX_TEST_CINDER")
	if openrc == "" {
		return
	}
	if login := readOpenrc(t, openrc); login.AuthURL == "" {
		release, err := strconv.Atoi(os.Getenv(releaseEnv))
		if err != nil {
			t.Fatal(err)
		}
		t.Run("real", func(t *testing.T) { testMeasured(t, login.Endpoint, release) })
	}
}

func testMeasured(t *testing.T, endpoint string, release int) {
	t.Helper()
	all := map[string][]measured{
		"URLs": urlForms, "older workflow": classicWorkflow, "attachments": withoutServer, "attachments to servers": withServer,
		"reserved without an attachment": reservedWithoutAttachment,
	}
	if release != 17 {
		all["attachments"] = slices.Concat(withoutServer, fromXenaOn)
	}
	for name, steps := range all {
		t.Run(name, func(t *testing.T) {
			r := &replayed{endpoint: endpoint, names: map[string]string{}}
			for _, m := range steps {
				r.check(t, m, release)
			}
			r.cleanUp(t)
		})
	}
}

// replayed is what a table of requests has made in a Cinder.
type replayed struct {
	endpoint string
	// names are the IDs of the newest volume and attachment.
	names   map[string]string
	volumes []string
}

func (r *replayed) check(t *testing.T, m measured, release int) {
	t.Helper()
	status, answer := r.send(t, m.method, m.path, m.microversion, m.body)
	want := m.later
	if release == 17 {
		want = m.on17
	}
	if text := fmt.Sprint(answer); status != want || status >= 400 && !strings.Contains(strings.Join(strings.Fields(text), " "), m.said) {
		t.Errorf("%s %s: %d %s, measured %d %q", m.what, m.microversion, status, text, want, m.said)
	}
	if id, ok := at(answer, "volume", "id").(string); ok {
		r.names["VOLUME"] = id
		r.volumes = append(r.volumes, id)
	}
	if id, ok := at(answer, "attachment", "id").(string); ok {
		r.names["ATTACHMENT"] = id
	}
	if len(r.volumes) == 0 {
		return
	}
	if now := r.idle(t, r.names["VOLUME"]); m.becomes != "" && now != m.becomes {
		t.Errorf("%s: the volume is %s, measured %s", m.what, now, m.becomes)
	}
}

// send sends a request, with the newest IDs in it.
func (r *replayed) send(t *testing.T, method, path, microversion, body string) (int, any) {
	t.Helper()
	return replay(t, r.endpoint, captured{
		Name: method + " " + path, Method: method, Path: path, Microversion: microversion, Body: json.RawMessage(body),
	}, r.names)
}

// idle returns the volume's status once Cinder no longer works on it, or "" if it does not exist.
func (r *replayed) idle(t *testing.T, id string) string {
	t.Helper()
	for range 200 {
		_, answer := r.send(t, http.MethodGet, hexProject+"/volumes/"+id, "", "")
		status, _ := at(answer, "volume", "status").(string)
		if !slices.Contains([]string{"creating", "extending", "detaching", "deleting"}, status) {
			return status
		}
		if err := wait(t.Context(), 200*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("Cinder works on volume %s for ever", id)
	return ""
}

// cleanUp deletes what the requests have made. Of an attachment to a server only a service may ask
// that.
func (r *replayed) cleanUp(t *testing.T) {
	t.Helper()
	if r.names["ATTACHMENT"] != "" {
		replay(t, r.endpoint, captured{
			Method: http.MethodDelete, Path: hexProject + "/attachments/ATTACHMENT", Microversion: "3.44", Service: true,
		}, r.names)
	}
	slices.Reverse(r.volumes) // clones before their sources
	for _, id := range r.volumes {
		r.idle(t, id)
		r.send(t, http.MethodDelete, hexProject+"/volumes/"+id, "", "")
		if left := r.idle(t, id); left != "" {
			t.Errorf("volume %s cannot be deleted, it is %s", id, left)
		}
	}
}

// From 26 on Cinder says beside the details of a connection, and in them, whether multipath is
// mandatory.
func TestFakeSaysEnforceMultipathAsEachReleaseWasMeasured(t *testing.T) {
	for _, release := range cindertest.Releases() {
		server := cindertest.NewRelease(release)
		t.Cleanup(server.Close)
		id := server.Add("available", nil)
		_, answer := replay(t, server.Endpoint(), captured{
			Method: "POST", Path: action, Body: json.RawMessage(`{"os-initialize_connection":` + node + `}`),
		}, map[string]string{"VOLUME": id})
		_, beside := at(answer, "connection_info").(map[string]any)["enforce_multipath"]
		_, inside := at(answer, "connection_info", "data").(map[string]any)["enforce_multipath"]
		if want := release >= 26; beside != want || inside != want {
			t.Errorf("Cinder %d: %v", release, answer)
		}
	}
}
