package subresources_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/pkg/manager/subresources"
)

// user is somebody on the hub, with no credentials of any worker.
type user struct {
	t      *testing.T
	name   string
	config *rest.Config
	api    rest.Interface
	web    *http.Client
}

// login makes a user; rights come by grant.
func login(f *ferrytest.Ferry, t *testing.T, name string) *user {
	t.Helper()
	u := &user{t: t, name: name, config: f.UserConfig(name)}
	clientset, err := kubernetes.NewForConfig(u.config)
	u.check(err)
	u.api = clientset.CoreV1().RESTClient()
	u.web, err = rest.HTTPClientFor(u.config)
	u.check(err)
	return u
}

// grant gives the user a Role in a namespace, with rules such as "get: jobs/log, jobs/pods".
func (u *user) grant(f *ferrytest.Ferry, namespace string, rules ...string) *user {
	u.t.Helper()
	var text strings.Builder
	for _, rule := range rules {
		verbs, resources, _ := strings.Cut(rule, ":")
		fmt.Fprintf(&text, "- {apiGroups: [%s], resources: [%s], verbs: [%s]}\n", subresources.Group, resources, verbs)
	}
	f.Apply(f.Hub, namespace, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s}
rules:
%[2]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, u.name, text.String()))
	return u
}

// reader is a user who may read all of this test's Jobs.
func reader(f *ferrytest.Ferry, t *testing.T) *user {
	t.Helper()
	return login(f, t, "reader").grant(f, f.NS, "get: jobs/pods, jobs/log, jobs/events, jobs/mirror")
}

func path(namespace, job, sub string) string {
	return "/apis/subresources.jobferry.dev/v1alpha1/namespaces/" + namespace + "/jobs/" + job + "/" + sub
}

// query reads "name=value" pairs.
func query(parameters []string) url.Values {
	values := url.Values{}
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		values.Add(name, value)
	}
	return values
}

// get reads a subresource.
func (u *user) get(ctx context.Context, namespace, job, sub string, parameters ...string) (string, error) {
	request := u.api.Get().AbsPath(path(namespace, job, sub))
	for name, values := range query(parameters) {
		for _, value := range values {
			request.Param(name, value)
		}
	}
	result := request.Do(ctx)
	content, _ := result.Raw() // its error isn't the server's
	return string(content), result.Error()
}

// must is get without an error.
func (u *user) must(ctx context.Context, namespace, job, sub string, parameters ...string) string {
	u.t.Helper()
	content, err := u.get(ctx, namespace, job, sub, parameters...)
	u.check(err)
	return content
}

// object is must for JSON.
func (u *user) object(ctx context.Context, into any, namespace, job, sub string) {
	u.t.Helper()
	u.check(json.Unmarshal([]byte(u.must(ctx, namespace, job, sub)), into))
}

// refused expects an error with a code and a text.
func (u *user) refused(ctx context.Context, code int32, text, namespace, job, sub string, parameters ...string) {
	u.t.Helper()
	content, err := u.get(ctx, namespace, job, sub, parameters...)
	u.expect(err, code, text)
	if err == nil {
		u.t.Logf("it said: %.300s", content)
	}
}

func (u *user) expect(err error, code int32, text string) {
	u.t.Helper()
	if s := statusOf(err); s.Code != code || !strings.Contains(s.Message, text) {
		u.t.Errorf("code %d: %q (%v); want %d and %q", s.Code, s.Message, err, code, text)
	}
}

// cut expects a command to be refused with a text: clients show only the message of a connection
// that isn't upgraded.
func (u *user) cut(err error, text string) {
	u.t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		u.t.Errorf("error %v, want %q", err, text)
	}
}

func statusOf(err error) metav1.Status {
	if s, ok := err.(apierrors.APIStatus); ok {
		return s.Status()
	}
	return metav1.Status{}
}

// headers gets a subresource as a browser would, and returns the response.
func (u *user) headers(ctx context.Context, namespace, job, sub string, edit func(http.Header)) (http.Header, string) {
	u.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.config.Host+path(namespace, job, sub), nil)
	u.check(err)
	if edit != nil {
		edit(request.Header)
	}
	answer, err := u.web.Do(request)
	u.check(err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	u.check(err)
	return answer.Header, string(content)
}

func (u *user) check(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Fatal(err)
	}
}
