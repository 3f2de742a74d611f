package shell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// container is what a verb finds around it.
type container struct {
	// requests, pv and account are the paths of the files and of the directory with the pod's
	// token.
	requests, pv, account string
	out, log              io.Writer
	get                   func(variable string) string
	sleep                 func(time.Duration)
}

// here returns the container that this program runs in.
func here() *container {
	return &container{
		requests: contract.RequestFile, pv: contract.PVFile, account: "/var/run/secrets/kubernetes.io/serviceaccount",
		out: os.Stdout, log: os.Stderr, get: os.Getenv, sleep: time.Sleep,
	}
}

// property returns the variable of a property.
func (in *container) property(name string) string { return in.get(contract.EnvName(name)) }

// required returns the variable of a property that cannot be empty.
func (in *container) required(name string) (string, error) {
	if value := in.property(name); value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the variable %s is empty", contract.EnvName(name))
}

// request returns the request of the claim that this run, or this command of flex each, is for.
func (in *container) request() (contract.Request, error) {
	uid, err := in.required(contract.PropClaimUID)
	if err != nil {
		return contract.Request{}, err
	}
	text, err := os.ReadFile(in.requests)
	if err != nil {
		return contract.Request{}, err
	}
	request, _, _, err := contract.DecodeRequest(text, uid)
	return request, err
}

// object is a JSON object. Its numbers are texts, since a large one is not to be rounded.
type object = map[string]any

// decode returns the one JSON object that a text is.
func decode(text []byte) (object, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out object
	if err := decoder.Decode(&out); err != nil {
		return nil, err
	}
	if out == nil {
		return nil, errors.New("it is null, and must be an object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return out, nil
}

// at returns what is at a path in an object, or nil.
func at(in any, path ...string) any {
	for _, key := range path {
		fields, _ := in.(object)
		in = fields[key]
	}
	return in
}

// text returns the text at a path in an object, or nothing.
func text(in any, path ...string) string {
	value, _ := at(in, path...).(string)
	return value
}

// oneLine returns a text as one line without control characters. An API server or a user may have
// written parts of it, and a line that begins with "claim: " is shown to the claim's user.
func oneLine(text string) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(text, "?"))
	return strings.Join(strings.Fields(printable), " ")
}
