package test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	kubectlCall = regexp.MustCompile(`\bkubectl [a-z]+ [^|]*`)
	// oneRequest is a call that asks the API server for nothing but what it does.
	oneRequest = regexp.MustCompile(`^kubectl ((patch|annotate) --local|(create|get) --raw) `)
	bashBlock  = regexp.MustCompile("(?s)```bash\n(.*?)```")
	block      = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```")
	// byPath is a command that goes through a tree and names what it finds there by paths.
	byPath = regexp.MustCompile(`(?:^|[^\w-])((rm|cp|chmod|chown|chgrp)\s+(-\S+\s+)*(-[a-zA-Z]*[rRa]|--recursive|--archive)|(find|tar|rsync|xargs)\s)`)
)

// provisioners returns the scripts of the images, by their paths.
func provisioners(t *testing.T) map[string]string {
	t.Helper()
	scripts := map[string]string{}
	for _, file := range tracked(t, "-provisioner.sh") {
		if strings.HasPrefix(file, "scripts/") {
			scripts[file] = content(t, file)
		}
	}
	return scripts
}

// Without --local or --raw kubectl first asks for all that the API server serves, at every run
// anew.
func TestScriptsOfProvisionersMakeNoNeedlessRequests(t *testing.T) {
	scripts := provisioners(t)
	for page, least := range map[string]int{"docs/contract.md": 2} {
		blocks := bashBlock.FindAllStringSubmatch(content(t, page), -1)
		for _, block := range blocks {
			scripts[page] += block[1]
		}
		if len(blocks) < least {
			t.Errorf("%s has %d blocks", page, len(blocks))
		}
	}
	if len(scripts) != 15 {
		t.Errorf("there are %d scripts", len(scripts))
	}
	calls := 0
	for where, script := range scripts {
		for line := range strings.Lines(script) {
			code, _, _ := strings.Cut(line, "# ")
			for _, call := range kubectlCall.FindAllString(code, -1) {
				calls++
				if !oneRequest.MatchString(call) {
					t.Errorf("%s: %s", where, call)
				}
			}
		}
	}
	if calls != 6 { // three of the environment provisioner, three of the page
		t.Errorf("only %d calls of kubectl are found", calls)
	}
}

// A script is what its readers judge a recipe by.
func TestScriptsHaveOneStatementALineOf100Columns(t *testing.T) {
	for _, file := range tracked(t, ".sh") {
		if !strings.HasPrefix(file, "scripts/") {
			continue
		}
		script := content(t, file)
		number := 0
		for line := range strings.Lines(script) {
			number++
			if columns := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); columns > 100 {
				t.Errorf("%s:%d has %d columns", file, number, columns)
			}
		}
		for _, line := range crowded(script) {
			t.Errorf("%s: two statements: %s", file, line)
		}
	}
}

// text is what is quoted in a script: its semicolons are not the shell's. Comments and escaped
// characters are, too, so that a quote in one of them begins nothing.
var text = regexp.MustCompile(`(?ms)\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?:^|[ \t])#[^\n]*`)

// oneStatement are the semicolons that join no statements: those of the shell's own words, and the
// last one of a group.
var oneStatement = regexp.MustCompile(`;;|; (do|then)\b|; \}`)

// crowded returns the lines of a script that have two statements.
func crowded(script string) (lines []string) {
	code := text.ReplaceAllStringFunc(script, func(quoted string) string {
		return `""` + strings.Repeat("\n", strings.Count(quoted, "\n"))
	})
	all := strings.Split(script, "\n")
	for i, line := range strings.Split(code, "\n") {
		if strings.Contains(oneStatement.ReplaceAllString(line, ""), ";") {
			lines = append(lines, all[i])
		}
	}
	return lines
}

func TestTwoStatementsOnALineAreFound(t *testing.T) {
	for line, want := range map[string]bool{
		`mkdir "$a"; mkdir "$b"`:                    true,
		`*) echo "no"; exit 64 ;;`:                  true,
		`[ -d "$a" ] || { mkdir "$a"; touch b; }`:   true,
		`f() { a; b; }`:                             true,
		`if a; then b; fi`:                          true,
		`for a in b; do c; done`:                    true,
		`if a; then`:                                false,
		`if a; then # it is so`:                     false,
		`for a in b; do`:                            false,
		`f() { a; }`:                                false,
		`{ read -r a <b; } 2>/dev/null || continue`: false,
		`delete) flex empty "$dir" ;;`:              false,
		`flex again "a; b" 'c; d' e\;`:              false,
		`flex again 'it'"'"'s a; b'`:                false,
		`# it's so; and so`:                         false,
		`a # it's so; and so`:                       false,
		"a='b\nc; d'":                               false,
		"a='b\nc'; d":                               true,
		`echo "$#"; a`:                              true,
	} {
		if got := crowded(line); (len(got) > 0) != want {
			t.Errorf("%s: two statements: %q", line, got)
		}
	}
}

// A pod may write to its volume at any time, and swap a directory for a link to those of all claims
// between two steps of a walk by path.
func TestNothingThatIsShippedWalksAVolumeByPath(t *testing.T) {
	texts := provisioners(t)
	for _, file := range tracked(t, "box.sh") { // what runs on a storage's own machine
		texts[file] = content(t, file)
	}
	for _, file := range tracked(t, ".md", ".yaml") {
		switch {
		case file == "docs/install.md": // its commands handle the folder of a release, before there is a volume
		case strings.HasPrefix(file, "configmaps/") || strings.HasPrefix(file, "deploy/"):
			texts[file] = content(t, file)
		case strings.HasPrefix(file, "docs/") || file == "README.md":
			for _, found := range block.FindAllStringSubmatch(content(t, file), -1) {
				texts[file] += found[1]
			}
		}
	}
	for where, text := range texts {
		for line := range strings.Lines(text) {
			code, _, _ := strings.Cut(line, "# ")
			if where == "docs/migrate-files.md" && strings.Contains(code, "cp -af /from/. /to/") {
				continue // no pod uses the two volumes, and the copy's pod mounts nothing else
			}
			if byPath.MatchString(code) {
				t.Errorf("%s walks by path, use flex empty, or handle the files of one directory: %s", where, line)
			}
		}
	}
}

// A script whose volumes are directories deletes them by flex empty: the walk by path that would
// do, too, is refused above. The volumes of the other scripts are files, or are elsewhere.
func TestScriptsWhoseVolumesAreDirectoriesDeleteByFlexEmpty(t *testing.T) {
	var found []string
	for file, text := range provisioners(t) {
		if strings.Contains(text, "flex empty \"$dir\"") {
			found = append(found, strings.TrimSuffix(filepath.Base(file), "-provisioner.sh"))
		}
	}
	slices.Sort(found)
	want := []string{"btrfs", "directory", "file-server", "isolated", "nfs", "seed"}
	if !slices.Equal(found, want) {
		t.Errorf("%q delete by flex empty, want %q", found, want)
	}
}

func TestAWalkByPathIsFound(t *testing.T) {
	for line, walks := range map[string]bool{
		`rm -rf -- "$dir"`:                    true,
		`rm -f -r "$dir"`:                     true,
		`rm --recursive "$dir"`:               true,
		`find "$dir" -delete`:                 true,
		`chmod -R a+rwX "$part"`:              true,
		`chown -hR 0:0 "$dir"`:                true,
		`cp -a "$from" "$to"`:                 true,
		`delete) busybox rm -Rf "$dir" ;;`:    true,
		`tar -C "$dir" -c .`:                  true,
		`rm -f "$record"`:                     false,
		`losetup --find "$file"`:              false,
		`cp -L /seed/* "$part/"`:              false,
		`chmod a+rwX "$part" "$part"/*`:       false,
		`chmod 0777 "$dir"`:                   false,
		`delete) flex empty "$dir" ;;`:        false,
		`mkdir -p "$dir" # rm -rf finds less`: false,
	} {
		code, _, _ := strings.Cut(line, "# ")
		if byPath.MatchString(code) != walks {
			t.Errorf("%s: walks by path: %t", line, !walks)
		}
	}
}
