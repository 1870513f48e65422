package boundtoken

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func jwt(payload string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

const bound = `{"iat":1000,"exp":4600,"kubernetes.io":{"namespace":"jobferry-system","serviceaccount":{"name":"hub","uid":"1"}}}`

func TestParse(t *testing.T) {
	got, ok := Parse(jwt(bound))
	if !ok || got.Account.String() != "jobferry-system/hub" || got.AccountUID != "1" || got.Lifetime() != time.Hour {
		t.Errorf("%+v, %t", got, ok)
	}
	for name, token := range map[string]string{
		"nothing":                 "",
		"opaque":                  "abc",
		"legacy":                  jwt(`{"kubernetes.io/serviceaccount/namespace":"a","kubernetes.io/serviceaccount/service-account.name":"b"}`),
		"of another issuer":       jwt(`{"iat":1,"exp":2,"sub":"alice"}`),
		"without expiry":          jwt(strings.Replace(bound, `"exp":4600,`, "", 1)),
		"expires before it's":     jwt(strings.Replace(bound, "4600", "900", 1)),
		"no JSON":                 jwt("{"),
		"other types":             jwt(`{"iat":"soon"}`),
		"no base64":               "e30.!!!.c2ln",
		"longer than any":         jwt(bound + strings.Repeat(" ", maxLength)),
		"four parts":              jwt(bound) + ".x",
		"without an account":      jwt(strings.Replace(bound, `"name":"hub"`, `"name":""`, 1)),
		"of an unknown namespace": jwt(strings.Replace(bound, `"namespace":"jobferry-system"`, `"namespace":""`, 1)),
	} {
		if got, ok := Parse(token); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// An answer of a worker in place of a token is dropped before it's read.
func TestParseLongTokens(t *testing.T) {
	dots := strings.Repeat(".", 4<<20)
	if n := testing.AllocsPerRun(10, func() { Parse(dots) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(jwt(bound))
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		if got, ok := Parse(token); ok && (got.Lifetime() <= 0 || got.Account.Name == "") {
			t.Errorf("%+v", got)
		}
	})
}

func TestReplace(t *testing.T) {
	kubeconfig := []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: c, cluster: {server: https://x}}]\n" +
		"users: [{name: u, user: {token: first}}]\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n")
	next, err := Replace(kubeconfig, "second")
	if err != nil || Of(kubeconfig) != "first" || Of(next) != "second" || !strings.Contains(string(next), "https://x") {
		t.Errorf("%s, %v", next, err)
	}
	for _, bad := range []string{"rubbish: [", "{}", "current-context: a", "current-context: a\ncontexts: [{name: a, context: {user: u}}]"} {
		if got := Of([]byte(bad)); got != "" {
			t.Errorf("%s: %s", bad, got)
		}
	}
	if _, err := Replace([]byte("{}"), "x"); err == nil || !strings.Contains(err.Error(), "context") {
		t.Error(err)
	}
}

func TestLoadKubeconfig(t *testing.T) {
	const one = "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
	for text, want := range map[string]bool{
		one: true, one + "# 2*2\n": true, one + "extensions: [*a]\n": false, "*a": false, one + "preferences: {colors:*a}": false,
		one + strings.Repeat(" ", MaxKubeconfigBytes): false,
	} {
		if _, err := LoadKubeconfig([]byte(text)); (err == nil) != want {
			t.Errorf("%.80q, %d bytes: %v", text, len(text), err)
		}
	}
}

func FuzzCost(f *testing.F) {
	f.Add("users: &a [{name: &b [x]}]\nclusters: [*a", ",*a", "]")
	f.Add("users: []\na: &a "+strings.Repeat("x", 20_000)+"\nb: [*a", ",*a", "]")
	f.Add("a: [", "[", "")
	f.Add("a: {", "a: ,", "}")
	f.Add("users:\n", "- {}\n", "")
	f.Add(`{"users":[{}`, ",{}", "]}")
	costtest.Check(f, 64<<10, 1000, func(text string) { Of([]byte(text)) })
}
