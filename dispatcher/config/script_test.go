package config_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

const text = "#!/bin/bash\nset -euo pipefail\n\"$1\"\n"

// imageOfRelease is the image that the dispatcher of these tests has for scripts.
const imageOfRelease = "localhost/flex-shell:v1"

// scripted returns the config of a ConfigMap with a script, in a class with the reclaimPolicy Delete.
func scripted(t *testing.T, data map[string]string) config.Config {
	t.Helper()
	return parse(t, scriptSource(data))
}

func scriptSource(data map[string]string) config.Source {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: "gold"}, Data: map[string]string{
		"script": text, "service-account-name": "gold", "verbs": "provision,delete,expand",
	}}
	for key, value := range data {
		cm.Data[key] = value
		if value == "" {
			delete(cm.Data, key)
		}
	}
	return config.SourceOf(cm, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}})
}

// batches are the sizes of batches by verb.
func batches(c config.Config) [3]int {
	return [3]int{c.BatchOf(contract.Provision), c.BatchOf(contract.Delete), c.BatchOf(contract.Expand)}
}

func TestTheImageAndTheBatchesOfAScript(t *testing.T) {
	for name, tc := range map[string]struct {
		data  map[string]string
		image string
		each  bool
		want  [3]int
	}{
		"the image of the release":       {nil, imageOfRelease, true, [3]int{1, 16, 16}},
		"with a batch-size":              {map[string]string{"batch-size": "4"}, imageOfRelease, true, [3]int{4, 4, 4}},
		"with the batch-size 1":          {map[string]string{"batch-size": "1"}, imageOfRelease, true, [3]int{1, 1, 1}},
		"an image of its own":            {map[string]string{"image": "python:3"}, "python:3", false, [3]int{1, 1, 1}},
		"an image of its own with flex":  {map[string]string{"image": "python:3", "batch-size": "8"}, "python:3", true, [3]int{8, 8, 8}},
		"if the dispatcher writes PVs":   {map[string]string{"write-pv": "dispatcher"}, imageOfRelease, true, [3]int{1, 1, 1}},
		"an image, and no script at all": {map[string]string{"image": "nfs:1", "script": ""}, "nfs:1", false, [3]int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c := scripted(t, tc.data)
			if c.Image != tc.image || c.Each != tc.each || batches(c) != tc.want {
				t.Errorf("got the image %s, each %t, batches of %v, want %s, %t, %v", c.Image, c.Each, batches(c), tc.image, tc.each, tc.want)
			}
		})
	}
}

// At most max-parallel scripts of a class are at work, and at most eight in one pod.
func TestScriptsAtOnceHaveTwoBounds(t *testing.T) {
	for _, tc := range []struct {
		parallel string
		requests int
		want     int
	}{{"20", 1, 1}, {"20", 5, 5}, {"20", 16, 8}, {"3", 16, 3}} {
		c := scripted(t, map[string]string{"max-parallel": tc.parallel})
		if got := c.AtOnceOf(tc.requests); got != tc.want {
			t.Errorf("%d requests with max-parallel %s: %d scripts at a time, want %d", tc.requests, tc.parallel, got, tc.want)
		}
	}
	if got := scripted(t, map[string]string{"image": "python:3"}).AtOnceOf(1); got != 0 {
		t.Errorf("a script that is the container's own program counts for %d scripts, want 0", got)
	}
}

func TestAScriptThatLinuxWouldNotRunAsMeantIsAFault(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no first line":                    {"set -e\n", "the first line must be #!"},
		"empty":                            {" \n", "the first line must be #!"},
		"no interpreter":                   {"#! \nset -e\n", "the first line must be #!"},
		"a blank line before":              {"\n" + text, "it has blanks or an empty line before it"},
		"blanks before":                    {"  " + text, "it has blanks or an empty line before it"},
		"a byte order mark":                {"\ufeff" + text, "byte order mark"},
		"lines of Windows":                 {strings.ReplaceAll(text, "\n", "\r\n"), "CR LF"},
		"a relative interpreter":           {"#!bash\nset -e\n", "absolute path"},
		"all lines folded":                 {"#!/bin/bash set -e exit\n", "write script: | instead of script: >"},
		"two lines folded":                 {"#!/bin/bash exit\n", "write script: | instead of script: >"},
		"lines folded up to an empty line": {"#!/bin/bash set -euo pipefail\ncase $1 in\n", "write script: | instead of script: >"},
		"too long":                         {text + strings.Repeat("#", 32<<10), "must have at most 32768 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			mustFault(t, faultsOf(source(set("script", tc.text))), map[string][]string{"data[script]": {tc.want}})
		})
	}
	// The events of claims repeat a fault, and a tenant reads them.
	const login = "login=adm:hunter2"
	if said := faultsOf(source(set("script", login+"\ntrue\n"))).ToAggregate().Error(); strings.Contains(said, "hunter2") {
		t.Errorf("the fault repeats a line of the script: %s", said)
	}
	for _, fine := range []string{"#!/usr/bin/env -S bash -e -u\ntrue\n", "#!/bin/sh -e\ntrue\n", "#! /bin/sh\ntrue", text + strings.Repeat("#", 32<<10-len(text))} {
		if faults := faultsOf(source(set("script", fine))); len(faults) > 0 {
			t.Errorf("%.40q: %v", fine, faults.ToAggregate())
		}
	}
}

func TestAScriptNeedsAnImageOfTheDispatcherOrItsOwn(t *testing.T) {
	_, faults := config.Parse(scriptSource(nil), config.Dispatcher{Provisioner: contract.ProvisionerName})
	mustFault(t, faults, map[string][]string{"data[image]": {"--script-image"}})
}

func TestAScriptIsTheProgramOfItsContainer(t *testing.T) {
	const command = "spec: {containers: [{name: provisioner, command: [/bin/true]}]}"
	mustFault(t, faultsOf(source(set("script", text), set("pod-template", command))),
		map[string][]string{"data[pod-template]": {"may not set the command"}})
}

// A dispatcher of an earlier version ran the image of such a config without its script. Where that
// ended with 0, a delete was done and the volume lost.
func TestAnEarlierDispatcherFindsNoImageBesideAScript(t *testing.T) {
	src := scriptSource(map[string]string{"image": "python:3"})
	if image, has := src.Data["image"]; has {
		t.Errorf("the source has the image %s where an earlier dispatcher looks for one", image)
	}
	stored, err := config.DecodeSource(src.Encode())
	if err != nil {
		t.Fatal(err)
	}
	cfg, faults := config.Parse(stored, config.Dispatcher{Provisioner: contract.ProvisionerName})
	if len(faults) > 0 || cfg.Image != "python:3" {
		t.Errorf("got the image %q and the faults %v of the revision", cfg.Image, faults.ToAggregate())
	}
}

func TestTheImageForScriptsIsNoPartOfTheRevision(t *testing.T) {
	src := scriptSource(nil)
	if strings.Contains(string(src.Encode()), "flex-shell") {
		t.Errorf("the revision is %s", src.Encode())
	}
	edited := scriptSource(map[string]string{"script": text + "# v2\n"})
	if src.RevisionName() == edited.RevisionName() {
		t.Error("a script that was edited has the revision of the older one")
	}
}

func TestAnEditedScriptReachesTheSameStorage(t *testing.T) {
	old := scripted(t, map[string]string{"server": "192.0.2.1"})
	if !config.SameStorage(old, scripted(t, map[string]string{"server": "192.0.2.1", "script": text + "# v2\n", "batch-size": "4"})) {
		t.Error("an edited script is another storage")
	}
	if config.SameStorage(old, scripted(t, map[string]string{"server": "192.0.2.2"})) {
		t.Error("another server is the same storage")
	}
}

func TestACredentialInAScriptIsWarnedOf(t *testing.T) {
	for line, warned := range map[string]bool{
		"API_TOKEN=abcdef0123456789":               true,
		`curl -H "X-Api-Key: $KEY" "$FLEX_SERVER"`: false,
		"password='correct horse'":                 true,
		"password=$OS_PASSWORD":                    false,
		"token=$(cat /etc/flex/secret/token)":      false,
		"token=`printenv FLEX_TOKEN`":              false,
		"SECRET=${SECRET:?is missing}":             false,

		`curl -H "Authorization: Bearer abcdef0123"`:                    true,
		`curl -H "Authorization: Bearer $FLEX_TOKEN"`:                   false,
		`printf 'Authorization: Basic %s\r\n' "$login"`:                 false,
		`curl -H 'X-Auth-Token: abcdef0123'`:                            true,
		`curl -H "X-Auth-Token: ${FLEX_TOKEN}"`:                         false,
		`curl -H @/etc/flex/files/header "$FLEX_API"`:                   false,
		`curl -u admin:hunter2 "$FLEX_API"`:                             true,
		`curl --user "$FLEX_USER:hunter2" "$FLEX_API"`:                  true,
		`curl -u "$FLEX_USER:$FLEX_PASSWORD" "$FLEX_API"`:               false,
		`curl -u "${FLEX_USER:?}:${FLEX_PASSWORD:?}"`:                   false,
		`curl -u admin:$(cat /etc/flex/files/password)`:                 false,
		`set -u; at=$(date -u +%H:%M:%S)`:                               false,
		`rsync -u "$FLEX_BOX:/export/$FLEX_PV_NAME" .`:                  false,
		`storage --password hunter2`:                                    true,
		`storage --admin-password 'hunter2'`:                            true,
		`storage --password "$FLEX_PASSWORD"`:                           false,
		`storage --password @/etc/flex/files/password`:                  false,
		`storage --password-file /etc/flex/files/password`:              false,
		`storage --ask-password --verbose`:                              false,
		`sshpass -p hunter2 ssh "$FLEX_BOX"`:                            true,
		`sshpass -phunter2 ssh "$FLEX_BOX"`:                             true,
		`sshpass -p "$FLEX_PASSWORD" ssh "$FLEX_BOX"`:                   false,
		`sshpass -f /etc/flex/files/password ssh "$FLEX_BOX"`:           false,
		`curl --data '{"user": "admin", "password": "hunter2"}'`:        true,
		`curl --data "{\"user\":\"admin\",\"password\":\"hunter2\"}"`:   true,
		`curl --data "{\"password\":\"$FLEX_PASSWORD\"}"`:               false,
		`jq --null-input '{password: env.FLEX_PASSWORD}'`:               false,
		`jq --null-input '{"password": "\(env.FLEX_PASSWORD)"}'`:        false,
		`-----BEGIN OPENSSH PRIVATE KEY-----`:                           true,
		`printf -- '-----BEGIN PRIVATE KEY-----\nMII\n' >"$TMPDIR/key"`: true,
		`[[ $key == "-----BEGIN OPENSSH PRIVATE KEY-----"* ]]`:          false,
		`-----BEGIN CERTIFICATE-----`:                                   false,
		`flex denied "the token has expired"`:                           false,
		`flex denied "the server refuses the login: token: expired"`:    false,
	} {
		c := scripted(t, map[string]string{"script": text + line + "\n"})
		said := strings.Join(c.Warnings, "\n")
		if got := strings.Contains(said, "change it: earlier revisions keep"); got != warned {
			t.Errorf("%s: warned %t, want %t: %s", line, got, warned, said)
		}
		if strings.Contains(said, "hunter2") || strings.Contains(said, "abcdef") {
			t.Errorf("the warning repeats what it found: %s", said)
		}
	}
}

// The files of a run have all its requests, and the Secrets of a batch need a right: a script that
// counts on its own alone is asked for nothing but one request, unless its config asks for batches.
func TestAScriptThatCountsOnOneRequestHasNoBatches(t *testing.T) {
	for text, want := range map[string]int{
		"rm -rf \"$FLEX_BASE_DIR/$FLEX_PV_NAME\"":       16,
		"jq -r .spec.nfs.path /etc/flex/pv.json":        1,
		"jq '.requests[0]' </etc/flex/request.json":     1,
		"flex secret --delete":                          1,
		"echo 'no secret, and no file pv_json is read'": 16,
	} {
		src := source(set("script", "#!/bin/bash\n"+text+"\n"))
		if got := parse(t, src).LaterBatch; got != want {
			t.Errorf("%s: %d requests in a run, want %d", text, got, want)
		}
		src.Data["batch-size"] = "4"
		if got := parse(t, src).LaterBatch; got != 4 {
			t.Errorf("%s: %d requests in a run, though its config says 4", text, got)
		}
	}
}

// An earlier dispatcher has passed a key of this name to the image. What it has stored is deleted
// by that image.
func TestAStoredScriptBesideAnImageIsAPropertyOfIt(t *testing.T) {
	cfg := parse(t, source(func(s *config.Source) { s.Data["script"] = "#!/bin/sh\ntrue\n" }))
	if cfg.Script != "" || cfg.Each || cfg.Properties["script"] == "" || cfg.Image != source().Data["image"] {
		t.Errorf("%+v", cfg)
	}
}

// An edit of a script that holds an address may be the address of another storage.
func TestConfigsWhoseScriptsHoldAddressesAreOfNoKnownStorage(t *testing.T) {
	of := func(text string) config.Config {
		return parse(t, source(set("script", "#!/bin/bash\n"+text+"\n")))
	}
	const here, there, keys = "curl https://filer-a.example/", "curl https://filer-b.example/", `curl "$FLEX_API"`
	for name, tt := range map[string]struct {
		a, b string
		same bool
	}{
		"another address":     {here, there, false},
		"an address no more":  {here, keys, false},
		"no address":          {keys, keys + "; true", true},
		"nothing has changed": {here, here, true},
	} {
		if got := config.SameStorage(of(tt.a), of(tt.b)); got != tt.same {
			t.Errorf("%s: the same storage: %t", name, got)
		}
	}
}
