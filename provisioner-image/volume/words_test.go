package volume_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A word of one storage's in the domain is the beginning of a rule for one storage.
func TestDomainIsFreeOfOpenStacksTerms(t *testing.T) {
	words := regexp.MustCompile(`(?i)openstack|nova\b|tenant|attach|reserv|microversion|initialize|connector|keystone`)
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words.FindAllString(string(text), -1) {
			t.Errorf("%s says %q: that belongs to package cinder", file, word)
		}
	}
	if !words.MatchString("reserveVolume") {
		t.Error("the test finds nothing")
	}
}
