package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

const (
	// quiet is the least time between two versions of a page.
	quiet = 500 * time.Millisecond
	// poll is how often a page is made again that shows what workers have. It is also how often a
	// stream at rest says that it's alive.
	poll = 3 * time.Second
)

// stream sends the page at the address in its parameter, now and at each change.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	address, err := url.ParseRequestURI(r.URL.Query().Get("page"))
	if err != nil || address.Host != "" {
		http.Error(w, "The parameter page must be the address of a page.", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := s.options.Clock.NewTicker(poll)
	defer ticker.Stop()
	var last []byte
	for r.Context().Err() == nil {
		changed := s.hub.Changed() // before the page is made, so that nothing is missed
		p := s.page(r.Context(), address)
		body, err := s.execute("page", p)
		if err != nil {
			return
		}
		message := []byte(": alive\n\n")
		if !bytes.Equal(body, last) {
			last, message = body, event(p, body)
		}
		if !send(w, message) || !s.wait(r, p, changed, ticker.C()) {
			return
		}
	}
}

// wait returns when the page may have changed; false: nobody waits for it any more.
func (s *Server) wait(r *http.Request, p *page, changed <-chan struct{}, tick <-chan time.Time) bool {
	if p.calm {
		changed = nil
	}
	rest := s.options.Clock.NewTimer(quiet)
	defer rest.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-rest.C():
	}
	for {
		select {
		case <-r.Context().Done():
			return false
		case <-changed:
			return true
		case <-tick:
			if p.polled {
				return true
			}
		}
	}
}

func event(p *page, body []byte) []byte {
	// strings always can be
	content, _ := json.Marshal(map[string]string{"title": p.Title, "html": string(body)})
	return fmt.Appendf(nil, "event: page\ndata: %s\n\n", content)
}

func send(w http.ResponseWriter, message []byte) bool {
	if _, err := w.Write(message); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}
