package controller

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// Each handler gets no object at all, which it cannot handle. client-go would end the process.
func TestAPanicOfAnyHandlerIsRecoveredFrom(t *testing.T) {
	c, err := New(fake.NewClientset(), nil, clock.RealClock{}, Options{Dispatcher: config.Dispatcher{Provisioner: "p"}, Namespaces: []string{"home"}})
	if err != nil {
		t.Fatal(err)
	}
	registry := metrics.NewKubeRegistry()
	c.RegisterMetrics(registry)
	handlers, panicked := reflect.ValueOf(c.handlers()), 0
	for i := range handlers.NumField() {
		handle, args := handlers.Field(i), []reflect.Value{}
		for in := range handle.Type().Ins() {
			args = append(args, reflect.Zero(in))
		}
		handle.Call(args)
		if len(args) > 0 && handlers.Type().Field(i).Name != "Account" { // it does not look at the account
			panicked++
		}
	}
	answer := httptest.NewRecorder()
	metrics.HandlerFor(registry, metrics.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	want := "flex_dispatcher_panics_total " + string(rune('0'+panicked/10)) + string(rune('0'+panicked%10))
	if !strings.Contains(answer.Body.String(), want) {
		t.Errorf("/metrics does not show %q:\n%s", want, answer.Body)
	}
}
