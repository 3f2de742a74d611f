package credentials

import (
	"errors"
	"fmt"
	"reflect"
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

// set parses the text as the field's type. An empty text leaves the field as it is.
func (s setting) set(text string) error {
	if text == "" {
		return nil
	}
	if s.value.Kind() == reflect.String {
		s.value.SetString(text)
		return nil
	}
	yes, err := types.ParseBool(text)
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
	f.UseClouds = f.Cloud != ""
	return f.login("the environment", files)
}

func first(env map[string]string, names []string) string {
	for _, name := range names {
		if env[name] != "" {
			return env[name]
		}
	}
	return ""
}
