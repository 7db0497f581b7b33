//! JSON, as far as a worker needs it. Numbers keep their text, so that none loses digits.

use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

pub fn text(value: impl Into<String>) -> Json {
    Json::Text(value.into())
}

pub fn number(value: impl fmt::Display) -> Json {
    Json::Number(value.to_string())
}

/// Null for what JSON cannot say: infinite, or not a number.
pub fn float(value: f64) -> Json {
    if value.is_finite() { number(value) } else { Json::Null }
}

pub fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
    Json::Object(fields.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

impl Json {
    /// A field of an object; null if there is none.
    pub fn get(&self, name: &str) -> &Json {
        match self {
            Json::Object(fields) => fields.iter().find(|(known, _)| known == name).map_or(&Json::Null, |(_, value)| value),
            _ => &Json::Null,
        }
    }

    pub fn items(&self) -> &[Json] {
        if let Json::List(items) = self { items } else { &[] }
    }

    pub fn as_str(&self) -> &str {
        if let Json::Text(value) = self { value } else { "" }
    }

    pub fn as_f64(&self) -> Option<f64> {
        if let Json::Number(value) = self { value.parse().ok() } else { None }
    }

    pub fn parse(source: &str) -> Result<Json, String> {
        let mut parser = Parser { rest: source };
        let value = parser.value()?;
        parser.skip();
        if parser.rest.is_empty() { Ok(value) } else { Err(format!("more after the end: {:.20}", parser.rest)) }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Json::Null => write!(out, "null"),
            Json::Bool(value) => write!(out, "{value}"),
            Json::Number(value) => write!(out, "{value}"),
            Json::Text(value) => quote(value, out),
            Json::List(items) => {
                write!(out, "[")?;
                for (place, item) in items.iter().enumerate() {
                    write!(out, "{}{item}", if place > 0 { "," } else { "" })?;
                }
                write!(out, "]")
            }
            Json::Object(fields) => {
                write!(out, "{{")?;
                for (place, (name, value)) in fields.iter().enumerate() {
                    write!(out, "{}", if place > 0 { "," } else { "" })?;
                    quote(name, out)?;
                    write!(out, ":{value}")?;
                }
                write!(out, "}}")
            }
        }
    }
}

fn quote(value: &str, out: &mut fmt::Formatter) -> fmt::Result {
    write!(out, "\"")?;
    for letter in value.chars() {
        match letter {
            '"' | '\\' => write!(out, "\\{letter}")?,
            control if (control as u32) < 0x20 => write!(out, "\\u{:04x}", control as u32)?,
            other => write!(out, "{other}")?,
        }
    }
    write!(out, "\"")
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, expected: &str) -> bool {
        self.skip();
        let found = self.rest.strip_prefix(expected);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn need(&mut self, expected: &str) -> Result<(), String> {
        if self.take(expected) { Ok(()) } else { Err(format!("{expected} expected before: {:.20}", self.rest)) }
    }

    fn value(&mut self) -> Result<Json, String> {
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
            if self.take(word) {
                return Ok(value);
            }
        }
        self.skip();
        match self.rest.chars().next() {
            Some('"') => Ok(Json::Text(self.string()?)),
            Some('[') => self.list(),
            Some('{') => self.object(),
            _ => {
                let end = self.rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(self.rest.len());
                let (digits, rest) = self.rest.split_at(end);
                self.rest = rest;
                if digits.parse::<f64>().is_ok() { Ok(number(digits)) } else { Err(format!("no value: {digits:.20}")) }
            }
        }
    }

    fn list(&mut self) -> Result<Json, String> {
        self.need("[")?;
        let mut items = Vec::new();
        while !self.take("]") {
            if !items.is_empty() {
                self.need(",")?;
            }
            items.push(self.value()?);
        }
        Ok(Json::List(items))
    }

    fn object(&mut self) -> Result<Json, String> {
        self.need("{")?;
        let mut fields = Vec::new();
        while !self.take("}") {
            if !fields.is_empty() {
                self.need(",")?;
            }
            self.skip();
            let name = self.string()?;
            self.need(":")?;
            fields.push((name, self.value()?));
        }
        Ok(Json::Object(fields))
    }

    fn string(&mut self) -> Result<String, String> {
        self.need("\"")?;
        let mut value = String::new();
        loop {
            let letter = self.rest.chars().next().ok_or("a string does not end")?;
            self.rest = &self.rest[letter.len_utf8()..];
            match letter {
                '"' => return Ok(value),
                '\\' => value.push(self.escape()?),
                other => value.push(other),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let letter = self.rest.chars().next().ok_or("a string does not end")?;
        self.rest = &self.rest[letter.len_utf8()..];
        Ok(match letter {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let first = self.hex()?;
                // Two of them stand for one character beyond the first 65,536.
                let code = if (0xD800..0xDC00).contains(&first) && self.rest.starts_with("\\u") {
                    self.rest = &self.rest[2..];
                    0x10000 + ((first - 0xD800) << 10) + (self.hex()?.wrapping_sub(0xDC00) & 0x3FF)
                } else {
                    first
                };
                char::from_u32(code).unwrap_or('\u{fffd}')
            }
            other => other,
        })
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self.rest.get(..4).ok_or("an escape does not end")?;
        self.rest = &self.rest[4..];
        u32::from_str_radix(digits, 16).map_err(|error| error.to_string())
    }
}
