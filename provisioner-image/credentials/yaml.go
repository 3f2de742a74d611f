package credentials

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"go.yaml.in/yaml/v3"
	"gopkg.in/gcfg.v1/types"

	"github.com/flex-provisioner/flex-provisioner/internal/onedocument"
)

// maxFile is the largest text of a clouds.yaml, in bytes. Each value of it takes a hundred times
// its size once it is parsed.
const maxFile = 256 << 10

// parseClouds returns the entries of a clouds.yaml, secure.yaml or clouds-public.yaml, undecoded: a
// decoder would change what only looks like a number, such as a password 0123.
func parseClouds(name string, data []byte) (map[string]yaml.Node, []string, error) {
	if len(data) > maxFile {
		return nil, nil, fmt.Errorf("%s: its size is %d bytes, and the limit is %d", name, len(data), maxFile)
	}
	root, err := onedocument.Parse(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, yamlFault(err))
	}
	if err := checkTree(root); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	var file struct {
		Clouds map[string]yaml.Node `yaml:"clouds"`
		Public map[string]yaml.Node `yaml:"public-clouds"`
	}
	if err := root.Decode(&file); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, yamlFault(err))
	}
	var warnings []string
	if len(root.Content) == 1 {
		warnings = unknownKeys(name, "the file", root.Content[0], []string{"clouds", "public-clouds", "cache", "client", "metrics"})
	}
	if file.Clouds == nil {
		return file.Public, warnings, nil
	}
	return file.Clouds, warnings, nil
}

// maxKeys is how many keys a mapping may have. A decoder takes time by the square of a mapping.
const maxKeys = 500

// checkTree returns why a parsed text, in which nothing is expanded yet, is not to be decoded. A
// short text with anchors and aliases may stand for one that no memory can hold. Their names may be
// anything, so they are not repeated.
func checkTree(n *yaml.Node) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return fmt.Errorf("line %d has an anchor (&) or an alias (*), which are not supported, since a short text could expand to a very long one: write out the full text", n.Line)
	}
	if n.Kind == yaml.MappingNode && len(n.Content) > 2*maxKeys {
		return fmt.Errorf("line %d has a mapping with %d keys, and the limit is %d: keep only the clouds that are used", n.Line, len(n.Content)/2, maxKeys)
	}
	for _, child := range n.Content {
		if err := checkTree(child); err != nil {
			return err
		}
	}
	return nil
}

var yamlLine = regexp.MustCompile(`line (\d+)`)

// yamlFault returns the line of a decoder's error, and drops the rest, which may hold a value.
func yamlFault(err error) error {
	if second, ok := errors.AsType[onedocument.SecondError](err); ok {
		return second
	}
	if found := yamlLine.FindStringSubmatch(err.Error()); found != nil {
		return fmt.Errorf("line %s is not valid in a clouds.yaml", found[1])
	}
	return errors.New("it is not a valid clouds.yaml")
}

// pairs returns keys and values of a mapping.
func pairs(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

// tolerate rewrites what openstacksdk accepts and gophercloud's types do not, in a cloud and in its
// regions.
func tolerate(n *yaml.Node) {
	tolerateValues(n)
	for key, regions := range pairs(n) {
		for i := 0; key == "regions" && i < len(regions.Content); i++ {
			for key, values := range pairs(regions.Content[i]) {
				if key == "values" {
					tolerateValues(values)
				}
			}
		}
	}
}

// tolerateValues accepts a truth in quotes, several interfaces to choose from, of which the first
// is used, and an auth that is left empty.
func tolerateValues(n *yaml.Node) {
	for key, value := range pairs(n) {
		yes, err := types.ParseBool(value.Value)
		switch {
		case key == "verify" && err == nil:
			*value = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(yes), Line: value.Line}
		case (key == "interface" || key == "endpoint_type") && value.Kind == yaml.SequenceNode && len(value.Content) > 0:
			*value = *value.Content[0]
		case key == "auth" && value.Tag == "!!null":
			*value = yaml.Node{Kind: yaml.MappingNode, Line: value.Line}
		}
	}
}

// warn adds a warning for each key of the cloud that is not read.
func (s *stack) warn(file string, n *yaml.Node) {
	if n == nil {
		return
	}
	known := append(keysOf(reflect.TypeFor[clouds.Cloud]()), keysOf(reflect.TypeFor[extraKeys]())...)
	s.warnings = append(s.warnings, unknownKeys(file, "cloud "+s.cloud, n, append(known, otherKeys...))...)
	for key, value := range pairs(n) {
		if key == "auth" {
			known := append(keysOf(reflect.TypeFor[clouds.AuthInfo]()), keysOf(reflect.TypeFor[extraAuth]())...)
			s.warnings = append(s.warnings, unknownKeys(file, "auth of cloud "+s.cloud, value, known)...)
		}
	}
}

// Settings of openstacksdk that mean nothing for volumes. Any service may have one with these
// endings.
var (
	otherKeys = []string{
		"networks", "floating_ip_source", "secgroup_source", "image_format", "image_api_use_tasks", "requires_floating_ip",
		"external_network", "internal_network", "default_network", "nat_source", "nat_destination", "message", "status",
		"vendor_hook", "disable_vendor_agent", "rate_limit", "api_timeout", "force_ipv4", "app_name", "app_version", "debug",
	}
	otherEndings = regexp.MustCompile(`_(api_version|default_microversion|endpoint_override|endpoint|interface|region_name|` +
		`service_name|service_type|min_version|max_version|status_code_retries|connect_retries)$`)
)

func unknownKeys(origin, where string, n *yaml.Node, known []string) []string {
	var out []string
	for key, value := range pairs(n) {
		if strings.HasPrefix(key, "x-") || slices.Contains(known, key) || otherEndings.MatchString(key) {
			continue
		}
		out = append(out, unread(origin, shownKey(key, value.Tag != "!!null")+" in "+where, key, known))
	}
	return out
}

// keysOf returns the keys of a type in YAML.
func keysOf(t reflect.Type) []string {
	var out []string
	for _, field := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		out = append(out, key)
	}
	return out
}
