package cindertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"
)

// Project is the project of every token of a Keystone.
const Project = "00000000000000000000000000000001"

// Keystone issues tokens for a Cinder.
type Keystone struct {
	*httptest.Server

	// Password is the only right password, and the only right secret of an application credential.
	Password string
	// Type is the type of Cinder in the catalog, and CatalogURL its address there, instead of the
	// usual ones.
	Type, CatalogURL string
	// Tokens counts the tokens that were issued.
	Tokens atomic.Int32
	// Asked holds the body of the newest request.
	Asked atomic.Value
}

// NewKeystone starts a Keystone whose catalog names the Cinder, as public endpoint in RegionOne;
// the caller closes it.
func NewKeystone(cinder *Server) *Keystone {
	k := &Keystone{Password: "Passw0rd!", Type: "volumev3", CatalogURL: cinder.Endpoint() + "/" + Project}
	k.Server = httptest.NewServer(http.HandlerFunc(k.serve))
	return k
}

func (k *Keystone) serve(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	if r.URL.Path != "/v3/auth/tokens" || json.NewDecoder(r.Body).Decode(&body) != nil {
		fault(http.StatusNotFound, "Not Found").write(w)
		return
	}
	text, _ := json.Marshal(body) // it was JSON before
	k.Asked.Store(string(text))
	if !strings.Contains(string(text), fmt.Sprintf("%q", k.Password)) {
		fault(http.StatusUnauthorized, "The request you have made requires authentication.").write(w)
		return
	}
	w.Header().Set("X-Subject-Token", fmt.Sprintf("token-%d:%s", k.Tokens.Add(1), Project))
	answer{http.StatusCreated, map[string]any{"token": map[string]any{
		"expires_at": time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC).Format("2006-01-02T15:04:05.000000Z"),
		"project":    map[string]any{"id": Project, "name": "p", "domain": map[string]any{"id": "default", "name": "Default"}},
		"catalog": []any{map[string]any{
			"type": k.Type, "name": "cinderv3",
			"endpoints": []any{map[string]any{
				"interface": "public", "region": "RegionOne", "region_id": "RegionOne",
				"url": k.CatalogURL,
			}},
		}},
	}}}.write(w)
}
