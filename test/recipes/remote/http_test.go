//go:build recipes

package remote

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// An answer may be lost although the work was done, and a request may be made twice.
func TestApplianceThatFailsForAWhileMakesOneVolume(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]string{
		"fails": {"503"}, "fails twice": {"500", "502"}, "is busy": {"429"}, "forgets to answer": {"forget"}, "forgets twice": {"forget", "forget"}, "answers late": {"late"},
		"answers late, then fails": {"late", "500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := newWorld(t, overHTTP()), claim(1)
			for _, verb := range []contract.Verb{contract.Provision, contract.Expand, contract.Delete} {
				w.appliance.faults = slices.Clone(faults)
				w.mustEnd(w.run(verb, c), 0, "")
				if len(w.appliance.faults) > 0 {
					t.Fatalf("%s: the faults %v have not happened", verb, w.appliance.faults)
				}
				switch verb {
				case contract.Provision:
					w.mustHave(mebi, c)
					w.mustHavePV(c)
					c.Size = 2 * mebi
				case contract.Expand:
					w.mustHave(2*mebi, c)
				default:
					w.mustHaveNothing()
				}
			}
			if w.appliance.made != 1 {
				t.Errorf("%d volumes were made", w.appliance.made)
			}
		})
	}
}

// An answer that is lost for longer than one run is looked for by the next one.
func TestApplianceThatNeverAnswersMakesOneVolume(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overHTTP()), claim(1)
	w.appliance.faults = []string{"forget", "forget", "forget"}
	w.mustEnd(w.run(contract.Provision, c), contract.ExitTempFail, "claim: the storage does not answer (last status 000)")
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.mustHave(mebi, c)
	if w.appliance.made != 1 {
		t.Errorf("%d volumes were made", w.appliance.made)
	}
}

func TestAnswersOfAnApplianceAreVerdicts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		faults []string
		verb   contract.Verb
		code   int
		says   string
	}{
		"bad login":                  {[]string{"always 401"}, contract.Provision, contract.ExitNoPerm, "refuses the provisioner's login"},
		"no right":                   {[]string{"403"}, contract.Provision, contract.ExitNoPerm, "refuses the provisioner's login"},
		"no right, once it was done": {[]string{"forget", "403"}, contract.Provision, contract.ExitTempFail, "claim: the storage does not answer"},
		"wrong config":               {[]string{"always 404"}, contract.Provision, contract.ExitConfig, "does not accept the request (status 404)"},
		"wrong config of a volume":   {[]string{"422"}, contract.Provision, contract.ExitConfig, "does not accept the request (status 422)"},
		"wrong, once it was done":    {[]string{"late", "400"}, contract.Provision, contract.ExitTempFail, "claim: the storage does not answer"},
		"full":                       {[]string{"507"}, contract.Provision, contract.ExitCapacity, "claim: the storage has no room"},
		"full, later":                {[]string{"503", "507"}, contract.Provision, contract.ExitCapacity, "claim: the storage has no room"},
		"down":                       {[]string{"always 503"}, contract.Provision, contract.ExitTempFail, "claim: the storage does not answer (last status 503)"},
		"conflict":                   {[]string{"409"}, contract.Provision, contract.ExitTempFail, "claim: the storage refuses the request for now (status 409)"},
		"no answer to read":          {[]string{"always 200"}, contract.Delete, contract.ExitTempFail, "no volumes in the answer"},
		"no answer with volumes": {
			[]string{"always 204"},
			contract.List, contract.ExitTempFail,
			"not answered with all volumes (status 204)",
		},
		"a part of the volumes": {
			[]string{"always 206"},
			contract.Provision, contract.ExitTempFail,
			"must have the script read all pages",
		},
		"creates it later": {
			[]string{"202"},
			contract.Provision, contract.ExitTempFail,
			"claim: the storage does not list the new volume yet",
		},
		"grows it later": {
			[]string{"202"},
			contract.Expand, contract.ExitTempFail,
			"claim: the volume has 1048576 bytes yet",
		},
		"deletes it later": {
			[]string{"202"},
			contract.Delete, contract.ExitTempFail,
			"claim: the storage still lists the volume",
		},
		"deletes another path": {
			[]string{"404"},
			contract.Delete, contract.ExitTempFail,
			"claim: the storage still lists the volume",
		},
		"moved":                     {[]string{"always 301"}, contract.List, contract.ExitTempFail, "for now (status 301)"},
		"down at a delete":          {[]string{"500", "500", "500"}, contract.Delete, contract.ExitTempFail, "claim: the storage does not answer"},
		"full, once it has grown":   {[]string{"late", "507"}, contract.Expand, contract.ExitTempFail, "claim: the storage does not answer (last status 507)"},
		"full, as it is read again": {[]string{"", "always 507"}, contract.Expand, contract.ExitTempFail, "claim: the storage does not answer (last status 507)"},
		"full at an expand":         {[]string{"507"}, contract.Expand, contract.ExitCapacity, "claim: the storage has no room"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := newWorld(t, overHTTP()), claim(1)
			if test.verb == contract.Delete || test.verb == contract.Expand {
				w.mustEnd(w.run(contract.Provision, c), 0, "")
				c.Size = 2 * mebi
			}
			w.appliance.faults = test.faults
			w.mustEnd(w.run(test.verb, c), test.code, test.says)
			if made := contract.VerdictOf(test.code).MadeNothing(); made && w.appliance.made > 0 {
				t.Error("the exit code says that nothing was made, and there is a volume")
			}
		})
	}
}

// A hostile storage, or what answers in its place, gets the login itself, and no other host does.
func TestLoginIsNotSentWhereAnApplianceRedirects(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"301", "302", "303", "307", "308"} {
		w := newWorld(t, overHTTP())
		var asked atomic.Int32
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
		w.appliance.moved, w.appliance.faults = other.URL, []string{"always " + status}
		for _, verb := range []contract.Verb{contract.Provision, contract.Delete, contract.List} {
			w.mustEnd(w.run(verb, claim(1)), contract.ExitTempFail, "status "+status)
		}
		other.Close()
		if n := asked.Load(); n > 0 {
			t.Errorf("after %s the other host was asked %d times", status, n)
		}
	}
}

// A hostile storage is not the only thing at its address that the login may change.
func TestAnApplianceLeadsTheLoginToNothingBesideItsVolumes(t *testing.T) {
	t.Parallel()
	for _, id := range []applianceID{
		"../users/7", "..", "7/../../users/8", "7?force=true", "7#8", "[1-9]", "{7,8}", "7\n8", "%2e%2e",
		"-7", "-7.5", `""`, "null", "true", "{}", "[7]",
	} {
		w, c := newWorld(t, overHTTP()), claim(1)
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		w.appliance.says, w.appliance.asked, c.Size = id, nil, 2*mebi
		for _, verb := range []contract.Verb{contract.Expand, contract.Delete} {
			w.mustEnd(w.run(verb, c), contract.ExitTempFail, "a volume of the storage has an ID or a size")
		}
		if slices.ContainsFunc(w.appliance.asked, func(method string) bool { return method != http.MethodGet }) {
			t.Errorf("the ID %q: the requests %q", id, w.appliance.asked)
		}
	}
}

func TestWhatIsMissingInConfigOrSecretIsNamed(t *testing.T) {
	forEach(t, func(of subtest) {
		t, r := of.t, of.recipe
		for _, file := range r.files {
			w := newWorld(t, r)
			w.remove("etc/secret/" + file)
			w.mustEnd(w.run(contract.Provision, claim(1)), contract.ExitConfig, "the Secret lacks the file "+file)
			if r.overSSH { // an empty chap would make logins that anybody knows who knows a claim's UID
				w.write("etc/secret/"+file, "")
				w.mustEnd(w.run(contract.Provision, claim(1)), contract.ExitConfig, "the Secret lacks the file "+file)
			}
			w.mustHaveNothing()
		}
		w := newWorld(t, r)
		all := w.properties
		for key := range all {
			if key == "answer-timeout" {
				continue
			}
			w.properties = maps.Clone(all)
			delete(w.properties, key)
			w.mustEnd(w.run(contract.Provision, claim(1)), contract.ExitConfig, "the config lacks the key")
		}
		w.properties = all // the storage is looked at by them: without its pool rbd takes another
		w.mustHaveNothing()
	})
}

// A volume that was deleted by hand has not grown.
func TestExpandOfNoVolumeFails(t *testing.T) {
	forEach(t, func(of subtest) {
		t, r := of.t, of.recipe
		w := newWorld(t, r)
		if e := w.run(contract.Expand, claim(1)); contract.VerdictOf(e.code) != contract.TryAgain {
			t.Errorf("exit %d: %s", e.code, e.out)
		}
	})
}

// A second volume with the UID is deleted with the first one, unless an audit names one of them. One
// of another claim is not deleted, and that is no success; one that an earlier run has deleted is.
func TestVolumesOfOneClaimAreDeleted(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overHTTP()), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	twin := *w.appliance.volumes[0]
	twin.ID = "twin"
	other := applianceVolume{ID: "other", Metadata: map[string]any{"uid": claim(2).UID}}
	w.appliance.volumes = append(w.appliance.volumes, &twin, &other)
	c.ListedVolume = "other"
	w.mustEnd(w.run(contract.Delete, c), contract.ExitTempFail, "claim: the listed volume is not the claim's")
	if n := len(w.appliance.volumes); n != 3 {
		t.Fatalf("the volume of another claim is deleted: %d are left", n)
	}
	c.ListedVolume = "twin"
	for range 2 {
		w.mustEnd(w.run(contract.Delete, c), 0, "")
	}
	if n := len(w.appliance.volumes); n != 2 || w.appliance.volumes[0].ID != "vol-1" {
		t.Fatalf("%d volumes are left", n)
	}
	c.ListedVolume = ""
	w.mustEnd(w.run(contract.Delete, c), 0, "")
	if len(w.appliance.volumes) != 1 || slices.Contains(w.appliance.asked, http.MethodPut) {
		t.Errorf("%d volumes are left", len(w.appliance.volumes))
	}
}

// A volume that is on another page would be created twice, or taken for deleted or lost.
func TestAPartOfAListIsNotTakenForAll(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*appliance){
		"next":  func(a *appliance) { a.beside = map[string]any{"next": "/volumes?page=2"} },
		"total": func(a *appliance) { a.beside = map[string]any{"total": 1000} },
		"link":  func(a *appliance) { a.link = `</volumes?page=2>; rel="next"` },
		"206":   func(a *appliance) { a.faults = []string{"always 206"} },
	} {
		w, c := newWorld(t, overHTTP()), claim(1)
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		change(w.appliance)
		for _, verb := range contract.Verbs() {
			w.mustEnd(w.run(verb, claim(2)), contract.ExitTempFail, "an administrator must")
		}
		if w.appliance.made != 1 {
			t.Errorf("%s: %d volumes were made", name, w.appliance.made)
		}
	}
}

// The volume may be that of an earlier run, which the storage has still to create.
func TestAPVHasAtLeastTheSizeThatItsClaimRequests(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overHTTP()), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.api.Forget()
	for _, size := range []int64{0, mebi - 1} {
		w.appliance.volumes[0].Bytes = size
		says := fmt.Sprintf("claim: the volume has %d bytes yet", size)
		w.mustEnd(w.run(contract.Provision, c), contract.ExitTempFail, says)
	}
	if pvs := w.api.All("persistentvolumes"); len(pvs) > 0 {
		t.Errorf("there are %v", pvs)
	}
}

func TestAnApplianceThatCannotBeAskedIsAFaultOfTheConfig(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ key, value, says string }{
		{"api", "storage.example", "the key api must begin with https:// or http://"},
		{"api", "file:///etc", "the key api must begin with https:// or http://"},
		{"api", "https://storage.example/ api", "the key api must begin with https:// or http://"},
		{"api", "https://storage.example/api?v=1", "the key api must begin with https:// or http://"},
		{"api", "https://storage.example:99999", "the key api is not a URL"},
		{"answer-timeout", "30s", "answer-timeout is 30s"},
		{"answer-timeout", "0", "answer-timeout is 0"},
	} {
		w := newWorld(t, overHTTP())
		w.properties[test.key] = test.value
		w.mustEnd(w.run(contract.Provision, claim(1)), contract.ExitConfig, test.says)
	}
}

func TestTheCertificateOfAnApplianceIsChecked(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overHTTP()), claim(1)
	server := httptest.NewTLSServer(w.appliance)
	t.Cleanup(server.Close)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.properties["api"] = server.URL + "/"
	w.mustEnd(w.run(contract.Provision, c), contract.ExitConfig, "the Secret lacks the file ca.crt")
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	w.write("etc/secret/ca.crt", string(own))
	for _, verb := range []contract.Verb{contract.Provision, contract.Delete} {
		w.mustEnd(w.run(verb, c), 0, "")
	}
	w.properties["api"] = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	w.mustEnd(w.run(contract.Provision, c), contract.ExitConfig, "ca.crt of the Secret has no CA that")
}
