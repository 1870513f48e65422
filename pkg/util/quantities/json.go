package quantities

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// HasCostlyJSON reports whether JSON has a costly quantity, where a type has quantities. Without a
// type, each text that looks like one counts. Nothing decodes what isn't JSON.
func HasCostlyJSON(text []byte, of reflect.Type) bool {
	if !MayHaveCostly(text) || !json.Valid(text) { // what is valid isn't nested deeply
		return false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return (&jsonReader{Decoder: d, known: of != nil}).hasCostly(of)
}

// jsonReader reads JSON token by token: of keys that are there twice, both are decoded.
type jsonReader struct {
	*json.Decoder
	known bool
}

// hasCostly reads the next value. It is that of a type, or nil for one without quantities.
func (r *jsonReader) hasCostly(of reflect.Type) bool {
	token, err := r.Token()
	if err != nil {
		return false // nothing decodes it
	}
	switch token := token.(type) {
	case json.Delim:
		return r.hasCostlyElement(token, of)
	case json.Number:
		return r.isCostly(string(token), of)
	case string:
		return r.isCostly(token, of)
	}
	return false
}

func (r *jsonReader) isCostly(text string, of reflect.Type) bool {
	return (of == Type || !r.known && strings.Trim(strings.TrimSpace(text), "+-0123456789.eEinumkKMGTP") == "") && IsCostly(text)
}

func (r *jsonReader) hasCostlyElement(begin json.Delim, of reflect.Type) bool {
	for r.More() {
		element := elementOf(of)
		if begin == '{' {
			key, err := r.Token()
			if err != nil {
				return false
			}
			if of != nil && of.Kind() == reflect.Struct {
				element = jsonFieldOf(of, key.(string)) //nolint:forcetypeassert // a key is a string
			}
		}
		if r.hasCostly(element) {
			return true
		}
	}
	_, _ = r.Token() // the end, or what isn't JSON
	return false
}

// elementOf is the type of a list's or map's elements; nil: it has none.
func elementOf(of reflect.Type) reflect.Type {
	if of == nil || of.Kind() != reflect.Slice && of.Kind() != reflect.Map {
		return nil
	}
	return withoutPointer(of.Elem())
}

func withoutPointer(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}

// jsonFieldOf is the type of a struct's field by its name in JSON; nil: it has none.
func jsonFieldOf(of reflect.Type, name string) reflect.Type {
	for i := range of.NumField() {
		f := of.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		field := withoutPointer(f.Type)
		switch {
		case tag != "" && strings.EqualFold(tag, name): // as encoding/json does
			return field
		case tag == "" && f.Anonymous && field.Kind() == reflect.Struct:
			if found := jsonFieldOf(field, name); found != nil {
				return found
			}
		}
	}
	return nil
}
