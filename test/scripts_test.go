package test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	kubectlCall = regexp.MustCompile(`\bkubectl [a-z]+ [^|]*`)
	// oneRequest is a call that asks the API server for nothing but what it does.
	oneRequest = regexp.MustCompile(`^kubectl ((patch|annotate) --local|(create|get) --raw) `)
	bashBlock  = regexp.MustCompile("(?s)```bash\n(.*?)```")
	block      = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```")
	// byPath is a command that goes through a tree and names what it finds there by paths.
	byPath = regexp.MustCompile(`\b((rm|cp|chmod|chown|chgrp)\s+(-\S+\s+)*(-[a-zA-Z]*[rRa]|--recursive|--archive)|(find|tar|rsync|xargs)\s)`)
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
	if len(scripts) != 14 {
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

// A pod may write to its volume at any time, and swap a directory for a link to those of all claims
// between two steps of a walk by path.
func TestNothingThatIsShippedWalksAVolumeByPath(t *testing.T) {
	texts := provisioners(t)
	for _, file := range tracked(t, "box.sh") { // what runs on a storage's own machine
		texts[file] = content(t, file)
	}
	for _, file := range tracked(t, ".md", ".yaml") {
		switch {
		case file == "docs/release.md": // its commands handle the folder of a release, before there is a volume
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
