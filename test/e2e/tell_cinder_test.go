//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// tellCinder sends a request that changes something, as the administrator.
func tellCinder(ctx context.Context, path string, what any) error {
	account, err := administrator()
	if err != nil {
		return err
	}
	body, err := json.Marshal(what)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, account.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-Auth-Token", account.token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := cinderClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		said, _ := io.ReadAll(answer.Body) // there is an error already
		return fmt.Errorf("%s: %s: %s", path, answer.Status, said)
	}
	return nil
}
