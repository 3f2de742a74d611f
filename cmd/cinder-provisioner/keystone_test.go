package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"
)

// logIn asks keystone by plain HTTP for a token and for Cinder's public address.
func logIn(t *testing.T, env map[string]string) (token, endpoint string) {
	t.Helper()
	question, err := json.Marshal(map[string]any{"auth": auth(env)})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, env["OS_AUTH_URL"]+"/auth/tokens", bytes.NewReader(question))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var body catalog
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil || answer.StatusCode != http.StatusCreated {
		t.Fatalf("log in to keystone: %s, %v", answer.Status, err)
	}
	return answer.Header.Get("X-Subject-Token"), body.cinder(t)
}

type object = map[string]any

// auth is what the lab's openrc files say: an application credential, or a password for a project.
func auth(env map[string]string) object {
	if id := env["OS_APPLICATION_CREDENTIAL_ID"]; id != "" {
		return object{"identity": object{
			"methods":                []string{"application_credential"},
			"application_credential": object{"id": id, "secret": env["OS_APPLICATION_CREDENTIAL_SECRET"]},
		}}
	}
	domain := object{"id": "default"}
	return object{
		"identity": object{"methods": []string{"password"}, "password": object{
			"user": object{"name": env["OS_USERNAME"], "password": env["OS_PASSWORD"], "domain": domain},
		}},
		"scope": object{"project": object{"name": env["OS_PROJECT_NAME"], "domain": domain}},
	}
}

type catalog struct {
	Token struct {
		Catalog []struct {
			Type      string `json:"type"`
			Endpoints []struct {
				Interface string `json:"interface"`
				URL       string `json:"url"`
			} `json:"endpoints"`
		} `json:"catalog"`
	} `json:"token"`
}

func (c catalog) cinder(t *testing.T) string {
	t.Helper()
	for _, service := range c.Token.Catalog {
		for _, e := range service.Endpoints {
			if service.Type == "volumev3" && e.Interface == "public" {
				return e.URL
			}
		}
	}
	t.Fatalf("keystone's catalog has no Cinder: %+v", c)
	return ""
}
