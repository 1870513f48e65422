package dashboard

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

var functions = template.FuncMap{
	"age":     age,
	"percent": func(n float64) string { return fmt.Sprintf("%.3f%%", n) },
	"middle":  func(left, width float64) string { return fmt.Sprintf("%.3f%%", left+width/2) },
	"lower":   strings.ToLower,
	"class":   func(state string) string { return strings.ToLower(strings.ReplaceAll(state, " ", "")) },
	"clock":   func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"took":    func(from, to time.Time) string { return duration.HumanDuration(max(to.Sub(from), 0)) },
	"count":   count,
	"unless": func(chosen bool, value string) string {
		if chosen {
			return ""
		}
		return value
	},
	"add":  func(a, b int) int { return a + b },
	"some": func(names []string) []string { return names[:min(len(names), 20)] },
}

// parse reads the templates of assets, with all addresses below a path. They get a page, whatever
// part of it they print.
func parse(base string) (*template.Template, error) {
	names, err := fs.Glob(assets, "assets/*.html")
	if err != nil {
		return nil, err
	}
	templates := template.New("").Funcs(functions)
	for _, name := range names {
		text, err := assets.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if _, err := templates.Parse(strings.ReplaceAll(string(text), `="/`, `="`+base+`/`)); err != nil {
			return nil, err
		}
	}
	return templates, nil
}

// count writes a number with separators: 100,000.
func count(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// execute prints a template.
func (s *Server) execute(name string, p *page) ([]byte, error) {
	var b bytes.Buffer
	err := s.templates.ExecuteTemplate(&b, name, p)
	return b.Bytes(), err
}

// age is the time since then. The browser keeps it up to date.
func age(now, at time.Time) template.HTML {
	if at.IsZero() {
		return "–"
	}
	utc := at.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s" data-age>%s</time>`, //nolint:gosec // no text of others is in it
		utc.Format(time.RFC3339), utc.Format("2006-01-02 15:04:05 UTC"), duration.HumanDuration(max(now.Sub(at), 0))))
}

// document answers with a whole page.
func (s *Server) document(w http.ResponseWriter, r *http.Request) {
	p := s.page(r.Context(), &url.URL{Path: s.base + r.URL.Path, RawQuery: r.URL.RawQuery})
	body, err := s.execute("document", p)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(p.status)
	_, _ = w.Write(body) // the browser has gone
}
