package credentials

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/gcfg.v1/scanner"
	"gopkg.in/gcfg.v1/token"
)

// commentWarnings returns a warning for each value that a # or a ; may have cut: outside of quotes
// the parser takes either for the beginning of a comment, wherever it stands (scanValString in
// gcfg's scanner.go).
func commentWarnings(origin string, data []byte) []string {
	file := token.NewFileSet().AddFile("", 1, len(data))
	var s scanner.Scanner
	s.Init(file, data, nil, scanner.ScanComments)
	var out []string
	before, section, key := token.EOL, "", ""
	for {
		pos, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			return out
		case tok == token.IDENT && before == token.LBRACK:
			section = strings.ToLower(text)
		case tok == token.IDENT:
			key = strings.ToLower(text)
		case tok == token.COMMENT && before == token.STRING && isRead(section, key) && cuts(key, data, file.Offset(pos)):
			out = append(out, fmt.Sprintf("%s: the value of key %q in [%s] ends before a %c, which begins a comment:"+
				" write the value in double quotes if that character belongs to it", origin, key, section, text[0]))
		}
		before = tok
	}
}

func isRead(section, key string) bool {
	if section == "global" {
		return slices.Contains(globalKeys(), key)
	}
	return key == "endpoint" && (section == "blockstorage" || section == "cinder")
}

// cuts reports whether the comment at this place may be the rest of the key's value. One with a
// blank on both sides is a comment for certain, except beside a secret.
func cuts(key string, data []byte, at int) bool {
	const blanks = " \t\r\n"
	follows := at == 0 || strings.IndexByte(blanks, data[at-1]) >= 0
	ends := at+1 == len(data) || strings.IndexByte(blanks, data[at+1]) >= 0
	return !follows || !ends || isSecret(key)
}

func isSecret(key string) bool {
	return slices.ContainsFunc((&form{}).settings(), func(s setting) bool {
		_, secret := reflect.TypeAssert[Secret](s.value)
		return secret && s.key == key
	})
}
