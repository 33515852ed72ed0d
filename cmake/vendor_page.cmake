# SPDX-License-Identifier: Apache-2.0
# Lays beside the live page what it takes from the npm registry: the files of package-lock.json,
# whose hashes npm checks, and no scripts of theirs. Without npm the page works without charts.
# Variables: NPM, SOURCE (web/), FOLDER (to work in), STAMP (written if all is there)
file(MAKE_DIRECTORY ${FOLDER})
foreach(_name package.json package-lock.json .npmrc)
  configure_file(${SOURCE}/${_name} ${FOLDER}/${_name} COPYONLY)
endforeach()
if(NPM)
  execute_process(
    COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-timeout=30000
    WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE _code OUTPUT_VARIABLE _words ERROR_VARIABLE _words)
else()
  set(_code 1)
  set(_words "npm is not installed")
endif()
if(_code)
  message(WARNING "The live page gets no charts: ${_words}\nInstall npm, see that it reaches its "
    "registry, and build again; tables and lanes work without.")
else()
  file(TOUCH ${STAMP})
endif()
