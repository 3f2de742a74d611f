package config

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxScript is the largest size of a script, in bytes. It is an annotation of the pod, as the
	// requests and PVs are (contract.MaxFiles), and the API server lets all of them have 256 KiB.
	maxScript = 32 << 10
	// maxShebang is the longest first line that Linux reads of a script, in bytes
	// (BINPRM_BUF_SIZE of include/uapi/linux/binfmts.h, less a zero byte).
	maxShebang = 255
	// ScriptsAtOnce is how many scripts run at a time in one pod, and scriptBatch how many requests
	// one Job of a script has for the verbs that need no further right.
	ScriptsAtOnce = 8
	scriptBatch   = 16
)

// keyImageOfScript is where a source holds the image that a config names for its script. A
// dispatcher that does not know scripts would run that image without the script, and take its end
// for that of a delete. So it finds no image, reports that, and waits. No ConfigMap can have the
// key.
const keyImageOfScript = "image of the script"

// byteOrderMark is what some editors write at the beginning of a text.
const byteOrderMark = "\ufeff"

const (
	secretName = `password|passwd|passphrase|token|secret|api_?key`
	// literal begins as no variable, path, flag, format or command does.
	literal = `["']?[^\s"'$@%(){}<>;|&/\x60-][^\s"'$(){}<>;|&\x60]{5,}`
)

// credential are the forms of a line that holds a credential. A variable is none, and neither is a
// path or an @, with which a file is named: it is where a Secret is mounted.
var credential = regexp.MustCompile(`(?i)(?:` + strings.Join([]string{
	`(?:` + secretName + `)[a-z0-9_]*=`,                     // password=...
	`(?:` + secretName + `)[a-z0-9_]*\\?["']\s*:\s*\\?["']`, // {"password": "..."}
	`authorization:\s*(?:bearer|basic|token)\s+`,            // -H "Authorization: Bearer ..."
	`[a-z]-(?:token|key):\s*`,                               // -H "X-Auth-Token: ..."
	`\s(?:-u|--user|--proxy-user)[\s=]["']?[^\s"':]+["']?:`, // curl -u admin:...
	`--[a-z-]*(?:` + secretName + `)\s+`,                    // --password ...
	`sshpass\s+-p\s*`,                                       // sshpass -p ...
}, "|") + `)` + literal + `|-----BEGIN [a-z0-9 ]*PRIVATE KEY-----(?:\s*$|\\n)`)

// ofAllRequests is what a script would find otherwise in a batch than alone: the two files have all
// requests then, and Secrets of several claims need the right to write batches.
var ofAllRequests = regexp.MustCompile(`\b(request|pv)\.json\b|\bflex secret\b`)

// needsRunOfItsOwn reports whether a script that has not asked for batches may count on one
// request.
func needsRunOfItsOwn(script string) bool { return ofAllRequests.MatchString(script) }

// hasScript reports whether the source has a script. Beside an image it is a property of that
// image, as an earlier dispatcher has stored it: what a ConfigMap has there is under
// keyImageOfScript.
func (p *parser) hasScript() bool {
	_, script := p.src.Data[keyScript]
	_, image := p.src.Data[keyImage]
	return script && !image
}

// script parses the text of the program that the container runs.
func (p *parser) script() {
	if !p.hasScript() {
		return
	}
	text := p.src.Data[keyScript]
	p.cfg.Script = text
	if fault := scriptFault(text); fault != "" {
		// Events of claims repeat a fault, and a line of the text may hold a credential.
		p.invalid(keyScript, "(text)", "%s", fault)
	}
	for i, line := range strings.Split(text, "\n") {
		if credential.MatchString(line) {
			p.cfg.Warnings = append(p.cfg.Warnings, fmt.Sprintf("line %d of the script seems to hold a "+
				"credential. Keep it in a Secret, and name the Secret in %s. And change it: earlier "+
				"revisions keep the text", i+1, keyEnvSecret))
			break
		}
	}
	if line := lineOfAddress(text); line > 0 {
		p.cfg.Warnings = append(p.cfg.Warnings, fmt.Sprintf("line %d of the script seems to hold an "+
			"address, a device or a pool. Addresses are keys. Write an address, a path or a pool as a "+
			"key of the ConfigMap, and read its variable. A script that holds an address itself would "+
			"take a corrected delete to another storage", line))
	}
}

// scriptFault returns why Linux would not run a text as it was meant, or nothing.
func scriptFault(text string) string {
	const first = "the first line must be #! and the interpreter, such as #!/bin/bash"
	shebang, _, _ := strings.Cut(text, "\n")
	begins := strings.TrimLeftFunc(text, unicode.IsSpace)
	words := strings.Fields(strings.TrimPrefix(shebang, "#!"))
	switch {
	case strings.HasPrefix(text, byteOrderMark):
		return first + ", and it begins with a byte order mark: save the text as UTF-8 without one"
	case text != begins && strings.HasPrefix(begins, "#!"):
		return first + ", and it has blanks or an empty line before it: remove them"
	case !strings.HasPrefix(text, "#!") || len(words) == 0:
		return first
	case strings.Contains(text, "\r"):
		return "its lines end with CR LF, and no interpreter has a carriage return in its name: " +
			"save the text with LF alone"
	case !path.IsAbs(words[0]):
		return first + ", by its absolute path"
	default:
		return foldFault(text, words)
	}
}

// foldFault returns how a text shows that its lines were joined, or nothing. words are those of its
// first line.
func foldFault(text string, words []string) string {
	shebang, rest, _ := strings.Cut(text, "\n")
	switch {
	case strings.TrimSpace(rest) == "":
		return "it has one line only. If the file has more, they were folded: " +
			"write script: | instead of script: >"
	case len(words) > 2 && words[1] != "-S" || len(shebang) > maxShebang:
		return "its first line has more than one argument, which Linux passes on as one. If the file has " +
			"line breaks there, they were folded: write script: | instead of script: >. Otherwise use one " +
			"argument, or #!/usr/bin/env -S"
	default:
		return ""
	}
}

// imageOf returns the image of a config, which a script need not name.
func (p *parser) imageOf() string {
	if p.cfg.Script == "" {
		return p.get(keyImage)
	}
	if own := p.get(keyImageOfScript); own != "" {
		return own
	}
	if p.of.ScriptImage == "" {
		p.faults = append(p.faults, field.Required(at(keyImage), "the dispatcher has no image for scripts: "+
			"add --script-image=IMAGE to its Deployment, or name the image of the script here"))
	}
	return p.of.ScriptImage
}
