package credentials

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/gcfg.v1/types"
)

// setting is one value of a form under its names: the key of the cloud config's [Global] section,
// and the environment variables, the usual one first.
type setting struct {
	key   string
	vars  []string
	value reflect.Value
}

// settings returns all fields of the form that have a tag "env".
func (f *form) settings() []setting {
	var out []setting
	v := reflect.ValueOf(f).Elem()
	for _, field := range reflect.VisibleFields(v.Type()) {
		if vars, ok := field.Tag.Lookup("env"); ok {
			out = append(out, setting{field.Tag.Get("gcfg"), strings.Split(vars, ","), v.FieldByIndex(field.Index)})
		}
	}
	return out
}

// setting returns the field with this key, or with this variable.
func (f *form) setting(name string) setting {
	all := f.settings()
	return all[slices.IndexFunc(all, func(s setting) bool { return s.key == name || s.vars[0] == name })]
}

// given returns the names of those fields that are set.
func (f *form) given(names ...string) []string {
	var out []string
	for _, name := range names {
		if s := f.setting(name); !s.value.IsZero() {
			out = append(out, s.name())
		}
	}
	return out
}

// name returns how messages name the field: by its key and its usual variable.
func (s setting) name() string {
	switch {
	case s.vars[0] == "":
		return s.key
	case s.key == "-":
		return s.vars[0]
	default:
		return s.key + " (" + s.vars[0] + ")"
	}
}

// trim removes line breaks from the ends of the values. A Secret that a command made of a file has
// them. Quotes and blanks may be meant.
func (f *form) trim(origin string) {
	for _, s := range f.settings() {
		if s.value.Kind() != reflect.String || s.key == keyOfCA {
			continue
		}
		text := strings.Trim(s.value.String(), "\r\n")
		warning := oddEnds(text)
		if text != s.value.String() {
			warning = "has a line break at its end, which is removed: write the Secret without it"
		}
		if warning != "" {
			f.Warnings = append(f.Warnings, fmt.Sprintf("%s: %s %s", origin, s.name(), warning))
		}
		s.value.SetString(text)
	}
}

// oddEnds returns the warning for a value that has kept the quotes or the blanks of the file it
// comes from, or "".
func oddEnds(text string) string {
	switch {
	case len(text) > 1 && text[0] == text[len(text)-1] && (text[0] == '"' || text[0] == '\''):
		return "is in quotes, which are sent as a part of it: remove them if they are not"
	case strings.TrimSpace(text) != text:
		return "begins or ends with a blank, which is sent as a part of it: remove it if it is not"
	default:
		return ""
	}
}

// keyOfCA is the key whose value is a file's content.
const keyOfCA = "cafilecontents"

// set parses the text as the field's type. An empty text leaves the field as it is.
func (s setting) set(text string) error {
	if text == "" {
		return nil
	}
	if s.value.Kind() == reflect.String {
		s.value.SetString(text)
		return nil
	}
	yes, err := types.ParseBool(strings.TrimSpace(text))
	if err != nil {
		return fmt.Errorf("%s must be true or false", s.vars[0])
	}
	s.value.Set(reflect.ValueOf(&yes))
	return nil
}

// FromEnv reads a login from the environment variables of the OpenStack clients. OS_CLOUD names an
// entry of a clouds.yaml. A variable that is set takes precedence over the clouds.yaml.
func FromEnv(env map[string]string, files Files) (Login, error) {
	var f form
	var faults []error
	for _, s := range f.settings() {
		faults = append(faults, s.set(first(env, s.vars)))
	}
	if err := errors.Join(faults...); err != nil {
		return Login{}, fmt.Errorf("the environment: %w", err)
	}
	f.Warnings = unknownVars(env)
	f.UseClouds = f.Cloud != ""
	return f.login("the environment", files)
}

// unknownVars returns a warning for each variable that looks like one of the clients, and is not
// read.
func unknownVars(env map[string]string) []string {
	var known, out []string
	for _, s := range (&form{}).settings() {
		known = append(known, s.vars...)
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		isOther := !strings.HasPrefix(name, "OS_") || otherEndings.MatchString(strings.ToLower(name))
		if !isOther && !slices.Contains(known, name) {
			out = append(out, unread("the environment", "variable "+name, name, known))
		}
	}
	return out
}

// UnusedVars returns a warning of what the environment has of a login, if there is anything: that of
// a file counts instead. Of a clouds.yaml the environment may name the cloud.
func UnusedVars(env map[string]string, file string) []string {
	f := form{}
	var names []string
	for _, s := range f.settings() {
		if s.vars[0] != "OS_CLOUD" && first(env, s.vars) != "" {
			names = append(names, s.vars[0])
		}
	}
	f.warnUnused("the environment", names, "the login is that of the file "+file)
	return f.Warnings
}

func first(env map[string]string, names []string) string {
	for _, name := range names {
		if env[name] != "" {
			return env[name]
		}
	}
	return ""
}
