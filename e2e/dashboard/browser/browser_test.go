package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// What is read of a page that is replaced meanwhile is read again of the next one.
func TestReadWhilePagesChange(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/" {
			fmt.Fprint(w, `<link rel="icon" href="data:,"><script>
				const n = Number(sessionStorage.n || 0)
				sessionStorage.n = n + 1
				if (n < 50) setTimeout(() => location.reload(), 20)
			</script>`)
		}
	}))
	defer s.Close()
	b := Open(t)
	b.Visit(s.URL)
	for range 10 {
		var text string
		b.read(`new Promise((is) => setTimeout(() => is("read"), 50))`, &text)
		if text != "read" {
			t.Fatalf("read %q", text)
		}
	}
	b.Leave()
}
