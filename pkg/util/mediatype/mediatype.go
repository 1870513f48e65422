// Package mediatype has client-go decode only answers of formats whose bounds are known.
package mediatype

import (
	"mime"
	"net/http"
	"slices"
)

// Only returns the media type of an answer if it's one of some. To another answer it gives a type
// that client-go doesn't decode. It would decode YAML, and what has no type as if it were what was
// asked for.
func Only(resp *http.Response, types ...string) (mediaType string) {
	mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(types, mediaType) {
		resp.Header.Set("Content-Type", "text/plain")
		return ""
	}
	return mediaType
}
