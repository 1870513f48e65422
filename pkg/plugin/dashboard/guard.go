package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/jobferry/jobferry/pkg/util/serve"
)

// guard lets only the user's browser pass.
type guard struct {
	// host is the address that browsers were given.
	host  string
	token string
	// base is the path that all pages are below. Nobody else knows it.
	base string
	next http.Handler
}

// newSecret makes a text that can't be guessed.
func newSecret() string { return rand.Text() }

// tokenParameter is the token's name in the first address.
const tokenParameter = "token"

// cookieName has the port, so that the cookies of several dashboards are told apart.
func (g *guard) cookieName() string {
	_, port, _ := net.SplitHostPort(g.host) // it was made by the listener
	return "jobferry-dashboard-" + port
}

// headers are in all answers.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"Cache-Control":                "no-store",
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	query := r.URL.Query()
	path, below := strings.CutPrefix(r.URL.Path, g.base+"/")
	switch {
	case r.Host != g.host:
		http.Error(w, "This isn't the address of the dashboard.", http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "The dashboard is for reading only.", http.StatusMethodNotAllowed)
	case below && query.Has(tokenParameter) && g.is(query.Get(tokenParameter)):
		// Browsers send a cookie to every port of a host, but only below its path.
		http.SetCookie(w, &http.Cookie{Name: g.cookieName(), Value: g.token, Path: g.base + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		query.Del(tokenParameter)
		path = g.base + "/" + strings.TrimLeft(path, "/")
		http.Redirect(w, r, (&url.URL{Path: path, RawQuery: query.Encode()}).String(), http.StatusSeeOther)
	case below && g.hasCookie(r):
		serve.Met(r.Context())
		g.next.ServeHTTP(w, r)
	default:
		http.Error(w, "Open the address that kubectl jobferry dashboard has printed: it has a token.", http.StatusUnauthorized)
	}
}

func (g *guard) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

func (g *guard) hasCookie(r *http.Request) bool {
	cookie, err := r.Cookie(g.cookieName())
	return err == nil && g.is(cookie.Value)
}
