package config

import (
	"net/netip"
	"regexp"
	"strings"
)

// notRead is what of a script's line names no storage: a comment, the text of a verdict, and a
// server in the pod itself.
var notRead = regexp.MustCompile(`(?:^|\s)#.*|` +
	`\bflex (?:refuse|full|denied|misconfigured|again) .*|` +
	`://(?:localhost|127\.|\[::1\])\S*`)

// namesStorage are the forms by which a line names a server, a device or a pool. In each a text
// stands where a script that reads keys has a variable.
var namesStorage = regexp.MustCompile(strings.Join([]string{
	`[a-z]://(?:[^\s/@"']*@)?(?:[A-Za-z0-9]|\[[0-9A-Fa-f])`,               // https://filer.example
	`\b(?:ssh|scp|sftp|rsync)\s(?:.*[\s"'])?[A-Za-z_][\w.-]*@[A-Za-z0-9]`, // ssh root@filer
	`=["']?[A-Za-z_][\w.-]*@[A-Za-z0-9]`,                                  // box=root@filer
	`(?:^|[\s"'=])[A-Za-z0-9][A-Za-z0-9.-]+:/[A-Za-z0-9]`,                 // filer:/export
	`/dev/(?:(?:[shv]|xv)d[a-z]|nvme\d|md\d|dm-\d|mmcblk\d)`,              // /dev/sdb
	`/dev/(?:mapper|zvol|md|disk/by-(?:uuid|label))/[A-Za-z0-9]`,          // /dev/mapper/data
	`\b(?:server|targetPortal)\\?["']?\s*:\s*\\?["'][A-Za-z0-9]`,          // {"server": "filer"}
	`--nfs[= ]["']?[A-Za-z0-9]`,                                           // flex pv --nfs filer
	`--(?:[a-z-]+-)?pool[= ]["']?[A-Za-z0-9]`,                             // --pool=data
	`\b(?:zfs|lv[a-z]+|rbd)\s(?:.*[\s"'])?["']?[A-Za-z][\w.-]*/["']?\$`,   // zfs create data/$name
}, "|"))

// hasDigit separates an address from a name of a module, as Dead::Beef.
var hasDigit = regexp.MustCompile(`\d`)

// numbers is what may be an IP address, with a port or without.
var numbers = regexp.MustCompile(`(?:^|[^\w.:-])([0-9A-Fa-f:.]{3,})`)

// lineOfAddress returns the first line of a script that seems to name a server, a device or a pool
// itself, or 0.
func lineOfAddress(script string) int {
	for i, line := range strings.Split(script, "\n") {
		line = notRead.ReplaceAllString(line, "")
		if namesStorage.MatchString(line) || hasIP(line) {
			return i + 1
		}
	}
	return 0
}

// hasIP reports whether a line has an IP address that is not the pod's own.
func hasIP(line string) bool {
	for _, m := range numbers.FindAllStringSubmatch(line, -1) {
		text := strings.TrimRight(m[1], ".:")
		ip, err := netip.ParseAddr(text)
		if err != nil {
			port, _ := netip.ParseAddrPort(text)
			ip = port.Addr()
		}
		if ip.IsValid() && !ip.IsLoopback() && !ip.IsUnspecified() && hasDigit.MatchString(text) {
			return true
		}
	}
	return false
}
