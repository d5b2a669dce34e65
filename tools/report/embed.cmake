# cmake -D OUT=file.c -D STYLE=page.css -D SCRIPT=page.js -P embed.cmake: the two files as arrays of embedded.h.
set(text "#include \"tools/report/embedded.h\"\n")
foreach(name STYLE SCRIPT)
  file(READ ${${name}} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(TOLOWER report_${name} array)
  string(APPEND text "const unsigned char ${array}[] = {${bytes}};\nconst size_t ${array}_bytes = sizeof ${array};\n")
endforeach()
file(WRITE ${OUT} "${text}")
