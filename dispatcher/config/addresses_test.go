package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// addressesAreKeys is what a warning and the page say of them.
const addressesAreKeys = "Write an address, a path or a pool as a key of the ConfigMap, and read " +
	"its variable. A script that holds an address itself would take a corrected delete to another storage."

// warnedOfAddress reports whether a script has the warning.
func warnedOfAddress(t *testing.T, script string) (string, bool) {
	t.Helper()
	said := strings.Join(scripted(t, map[string]string{"script": script}).Warnings, "\n")
	return said, strings.Contains(said, "Addresses are keys")
}

func TestAnAddressInAScriptIsWarnedOf(t *testing.T) {
	for line, warned := range map[string]bool{
		`curl "https://filer.example/api/volumes/$FLEX_PV_NAME"`:      true,
		`api=http://admin:$password@filer:8080`:                       true,
		`curl "https://[fd00::10]/api"`:                               true,
		`server=192.0.2.10`:                                           true,
		`mount 192.0.2.10:/export /mnt`:                               true,
		`targetcli "portals/ create 192.0.2.10:3260"`:                 true,
		`portal=[fd00::10]:3260`:                                      true,
		`ssh root@filer mkdir "$FLEX_PV_NAME"`:                        true,
		`ssh -o BatchMode=yes "backup@filer" true`:                    true,
		`box=root@filer.example`:                                      true,
		`mount -t nfs filer:/export /mnt`:                             true,
		`flex pv '{"spec":{"nfs":{"server":"filer.example"}}}'`:       true,
		`echo "{\"nfs\": {\"server\": \"filer.example\"}}"`:           true,
		`jq --null-input '{nfs: {server: "filer.example"}}'`:          true,
		`jq '{iscsi: {targetPortal: "filer.example"}}'`:               true,
		`jq '{nfs: {server: env.FLEX_NFS_SERVER}}'`:                   false,
		`jq '{nfs: {server: "\(env.FLEX_NFS_SERVER)"}}'`:              false,
		`echo "{\"nfs\": {\"server\": \"$FLEX_NFS_SERVER\"}}"`:        false,
		`printf '{"nfs": {"server": "%s"}}' "$FLEX_NFS_SERVER"`:       false,
		`echo "no server: $FLEX_NFS_SERVER" >&2`:                      false,
		`flex pv --nfs filer.example "/export/$FLEX_PV_NAME"`:         true,
		`mkfs.ext4 /dev/sdb1`:                                         true,
		`mount /dev/mapper/data-volumes /mnt`:                         true,
		`rbd --pool volumes create "$FLEX_PV_NAME"`:                   true,
		`zfs create "tank/$FLEX_PV_NAME"`:                             true,
		`rbd rm volumes/"$FLEX_PV_NAME"`:                              true,
		`lvremove --yes data/$FLEX_PV_NAME`:                           true,
		`curl "$FLEX_API/volumes/$FLEX_PV_NAME"`:                      false,
		`curl "https://$FLEX_SERVER/api"`:                             false,
		`curl "https://$user@$FLEX_SERVER:8443/api"`:                  false,
		`[[ $FLEX_API =~ ^https?://[^[:space:]?#]+$ ]]`:               false,
		`curl http://localhost:8080/ready http://127.0.0.1/ready`:     false,
		`nc -l 0.0.0.0 9000; nc 127.0.0.1 9000`:                       false,
		`ssh "$FLEX_USER@$FLEX_BOX" true # as root@filer`:             false,
		`# https://filer.example is an example`:                       false,
		`mount "$FLEX_NFS_SERVER:/$FLEX_PATH" /mnt`:                   false,
		`flex pv --nfs "$FLEX_NFS_SERVER" "$dir"`:                     false,
		`PATH=$PATH:/usr/sbin:/sbin`:                                  false,
		`ceph snap create "$1@$name"; rbd ls "$FLEX_POOL/$name"`:      false,
		`rbd --dest-pool "$FLEX_POOL" --pool="$FLEX_POOL" ls`:         false,
		`zfs create "$FLEX_PARENT/$FLEX_PV_NAME" </dev/null`:          false,
		`losetup --find "/dev/$device"; lvs "/dev/mapper/$name"`:      false,
		`flex refuse "no room: see https://wiki.example/storage"`:     false,
		`at=$(date +%H:%M:%S) version=1.2.3 mac=00:16:3e:00:00:01`:    false,
		`for item in "${list[@]}"; do echo "${item#*@}"; done`:        false,
		`jq '.items[] | select(.name == env.FLEX_PV_NAME) | @base64'`: false,
	} {
		if said, got := warnedOfAddress(t, text+line+"\n"); got != warned {
			t.Errorf("%s: warned %t, want %t: %s", line, got, warned, said)
		}
	}
}

// The warning names the line, repeats none of it, since it may hold a login, and says what the
// page says.
func TestTheWarningOfAnAddressSaysWhatThePageSays(t *testing.T) {
	said, _ := warnedOfAddress(t, text+"\napi=https://admin:hunter2@filer.example\n")
	if !strings.HasPrefix(said, "line 5 of the script ") || strings.Contains(said, "hunter2") {
		t.Errorf("the warning is %s", said)
	}
	page, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]string{"the warning": said + ".", "docs/configuration.md": string(page)}
	for place, words := range places {
		if !strings.Contains(strings.Join(strings.Fields(words), " "), addressesAreKeys) {
			t.Errorf("%s does not say %q", place, addressesAreKeys)
		}
	}
}

// People copy the recipes: none of them warns, or the warning would be skipped in their own.
func TestTheScriptsOfRecipesHoldNoAddressAndNoCredential(t *testing.T) {
	files, err := filepath.Glob("../../scripts/*.sh")
	if err != nil || len(files) < 15 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		script, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(script), "\n") {
			if said, _ := warnedOfAddress(t, text+line+"\n"); said != "" {
				t.Errorf("%s:%d: %s: %s", file, i+1, said, line)
			}
		}
	}
}
